// See synth.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/synth.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "base/units.h"
#include "gguf/writer.h"
#include "model/model.h"
#include "model_file/recorder.h"
#include "quant/random_rows.h"
#include "text/tokenizer/byte_vocabulary.h"

namespace sluice::model_file {
namespace {

using model::Architecture;
using model::Presence;
using model::TensorRequest;

void set_shape_keys(gguf::Metadata& out, const Architecture& architecture, const model::Config& c) {
  const auto set_int = [&](std::string_view name, int value) {
    out.set(cat(c.architecture, ".", name), static_cast<uint32_t>(value));
  };
  const auto set_float = [&](std::string_view name, float value) {
    out.set(cat(c.architecture, ".", name), value);
  };
  set_int("block_count", c.n_layers + c.n_mtp_blocks);
  set_int("context_length", c.n_ctx_train);
  set_int("embedding_length", c.d_model);
  set_int("attention.head_count", c.n_heads);
  set_int("attention.head_count_kv", c.n_kv_heads);
  set_int("attention.key_length", c.head_dim);
  set_int("attention.value_length", c.head_dim);
  set_int("rope.dimension_count", c.rope.n_rot > 0 ? c.rope.n_rot : c.head_dim);
  set_float("rope.freq_base", c.rope.base);
  set_float("attention.layer_norm_rms_epsilon", c.norm_eps);
  set_int("feed_forward_length", c.d_ff);
  if (!c.is_dense) {
    set_int("expert_count", c.n_experts);
    set_int("expert_used_count", c.n_experts_used);
    set_int(architecture.expert_width_key, c.d_ff);
    if (c.d_ff_shared > 0) set_int("expert_shared_feed_forward_length", c.d_ff_shared);
  }
  if (c.n_mtp_blocks > 0) set_int("nextn_predict_layers", c.n_mtp_blocks);
}

void set_hybrid_keys(gguf::Metadata& out, const SynthOptions& o) {
  const model::Config& c = o.config;
  const model::DeltaNetConfig& d = c.delta_net;
  if (d.n_taps == 0) return;
  const auto set_int = [&](std::string_view name, int64_t value) {
    out.set(cat(c.architecture, ".", name), static_cast<uint32_t>(value));
  };
  set_int("full_attention_interval", o.attention_interval);
  set_int("ssm.conv_kernel", d.n_taps);
  set_int("ssm.state_size", d.head_dim);
  set_int("ssm.group_count", d.n_key_heads);
  set_int("ssm.time_step_rank", d.n_value_heads);
  set_int("ssm.inner_size", d.value_cols());
  const auto& sections = c.rope.sections;
  if (sections == decltype(c.rope.sections){}) return;
  out.set(cat(c.architecture, ".rope.dimension_sections"),
          std::vector<int32_t>(sections.begin(), sections.end()));
}

// ChatML, in the special tokens of the byte vocabulary.
constexpr std::string_view kChatTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void set_tokenizer_keys(gguf::Metadata& out, int n_vocab) {
  text::ByteVocabulary v = text::make_byte_vocabulary(n_vocab);
  out.set("tokenizer.ggml.model", std::string("gpt2"));
  out.set("tokenizer.ggml.pre", std::string("qwen2"));
  out.set("tokenizer.ggml.tokens", std::move(v.tokens));
  out.set("tokenizer.ggml.token_type", std::move(v.kinds));
  out.set("tokenizer.ggml.merges", std::move(v.merges));
  out.set("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(v.end_of_turn));
  out.set("tokenizer.ggml.add_bos_token", false);
  out.set("tokenizer.chat_template", std::string(kChatTemplate));
}

void set_metadata(gguf::Metadata& out, const Architecture& architecture, const SynthOptions& o) {
  const model::Config& c = o.config;
  out.set("general.architecture", c.architecture);
  out.set("general.name", cat("synthetic ", c.architecture, " ", o.mix.name()));
  out.set("general.file_type", o.mix.file_type());
  out.set("general.quantization_version", uint32_t{2});
  set_shape_keys(out, architecture, c);
  set_hybrid_keys(out, o);
  set_tokenizer_keys(out, c.n_vocab);
}

// Norms near one, so that they are neither neutral nor harmful; decays of recurrent layers below
// zero, from slow to fast; all else around zero.
void fill_vector(const TensorRequest& request, const SynthOptions& o, std::span<float> out) {
  const uint64_t seed = seed_of(request.name, o.seed);
  const bool is_norm = request.name.find("norm") != std::string::npos;
  const bool is_decay = request.name.ends_with(".ssm_a");
  for (size_t i = 0; i < out.size(); ++i) {
    const float u = random_signed(random_bits(seed, i));
    out[i] = is_norm ? 1.0f + 0.2f * u : is_decay ? 0.5f * u - 0.52f : o.std * 1.7320508f * u;
  }
}

// Taps are multiplied with one channel alone: small ones would leave next to nothing of it.
float std_of(const std::string& tensor, const SynthOptions& o) {
  constexpr float kTaps = 0.5f;
  return tensor.find("ssm_conv1d") != std::string::npos ? kTaps : o.std;
}

// One tensor after another, in pieces that all threads fill together.
class RandomTensors {
 public:
  RandomTensors(gguf::Writer& writer, const SynthOptions& options, ThreadPool& pool)
      : writer_(writer), options_(options), pool_(pool) {}

  void write_vector(const TensorRequest& request) {
    std::vector<float> values(static_cast<size_t>(request.shape[0]));
    fill_vector(request, options_, values);
    writer_.write(std::as_bytes(std::span(values)));
  }

  // on_bytes(n) after every n bytes written.
  template <typename OnBytes>
  void write_matrix(const gguf::TensorInfo& info, OnBytes&& on_bytes) {
    constexpr uint64_t kPiece = 16 * kMiB;
    constexpr int64_t kGrain = 4096;  // blocks a thread takes at a time
    const auto type = static_cast<quant::Type>(info.type->id);
    const uint64_t block_bytes = info.type->block_bytes;
    const auto n_blocks = static_cast<int64_t>(info.n_bytes / block_bytes);
    const auto step = static_cast<int64_t>(kPiece / block_bytes);
    const uint64_t seed = seed_of(info.name, options_.seed);
    for (int64_t first = 0; first < n_blocks; first += step) {
      const int64_t n = std::min(step, n_blocks - first);
      piece_.resize(static_cast<size_t>(n) * block_bytes);
      pool_.parallel_for(n, kGrain, [&](int64_t begin, int64_t end, int) {
        quant::random_row_blocks(type, seed, static_cast<uint64_t>(first + begin), end - begin,
                                 std_of(info.name, options_),
                                 piece_.data() + static_cast<uint64_t>(begin) * block_bytes);
      });
      writer_.write(piece_);
      on_bytes(piece_.size());
    }
  }

 private:
  gguf::Writer& writer_;
  const SynthOptions& options_;
  ThreadPool& pool_;
  std::vector<std::byte> piece_;
};

void require_sane(const SynthOptions& options) {
  if (options.config.n_vocab < text::kSmallestByteVocabulary) {
    throw Error(Errc::bad_request,
                cat("a vocabulary of ", options.config.n_vocab, " tokens; expected at least ",
                    text::kSmallestByteVocabulary));
  }
  if (!(options.std > 0.0f && options.std < 100.0f)) {
    throw Error(Errc::bad_request,
                cat("a standard deviation of ", options.std, "; expected more than 0, below 100"));
  }
}

}  // namespace

void write_synthetic_model(const std::string& path, const SynthOptions& options, ThreadPool& pool,
                           const std::function<void(uint64_t, uint64_t)>& progress) {
  const Architecture* architecture = model::find_architecture(options.config.architecture);
  CHECK(architecture && architecture->can_run());
  require_sane(options);
  gguf::Writer writer(path);
  set_metadata(writer.metadata(), *architecture, options);
  // What is written must read back: the same checks hold for a synthetic model as for any other.
  const model::Config config = architecture->read_config(model::ConfigReader(writer.metadata()));

  Recorder recorder([&](const std::string& name) {
    return std::ranges::any_of(options.forms, [&](const std::string& form) {
      return name.ends_with(cat(".", form, ".weight"));
    });
  });
  bind_all(*architecture, config, {}, recorder);
  std::vector<TensorRequest> requests(recorder.requests().begin(), recorder.requests().end());
  std::erase_if(requests, [](const TensorRequest& r) { return r.presence == Presence::rare; });
  for (const TensorRequest& request : requests) {
    const MixContext context{config.n_layers, config.n_experts};
    writer.add_tensor(request.name, options.mix.type_of(request.name, request.shape, context),
                      request.shape);
  }
  writer.begin();
  uint64_t total = 0;
  for (const gguf::TensorInfo& info : writer.tensors()) total += info.n_bytes;

  RandomTensors tensors(writer, options, pool);
  uint64_t done = 0;
  const auto on_bytes = [&](uint64_t n) {
    done += n;
    if (progress) progress(done, total);
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    const TensorRequest& request = requests[i];
    if (request.shape.size() == 1) {
      tensors.write_vector(request);
      on_bytes(writer.tensors()[i].n_bytes);
    } else {
      tensors.write_matrix(writer.tensors()[i], on_bytes);
    }
  }
  writer.finish();
}

}  // namespace sluice::model_file
