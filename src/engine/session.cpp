// The public interface of sluice.h on top of model/ and the stepper.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/thread_pool.h"
#include "engine/device/device_steps.h"
#include "engine/step/stepper.h"
#include "engine/woven_weights.h"
#include "gguf/model_file.h"
#include "model/model.h"
#include "sampler/greedy.h"
#include "sluice/sluice.h"

namespace sluice {
namespace {

constexpr SequenceId kOnlySequence{0};
constexpr int kDefaultContext = 4096;

ModelInfo make_info(const gguf::ModelFile& file, const model::Config& c) {
  ModelInfo info{.architecture = c.architecture,
                 .name = c.name,
                 .n_layers = c.n_layers,
                 .d_model = c.d_model,
                 .n_vocab = c.n_vocab,
                 .n_ctx_train = c.n_ctx_train,
                 .n_experts = c.n_experts,
                 .n_experts_used = c.n_experts_used,
                 .file_bytes = file.file_bytes(),
                 .eos = {},
                 .weights = WeightMemory::mapped};
  const std::string_view key = "tokenizer.ggml.eos_token_id";
  if (file.metadata().contains(key)) {
    info.eos = static_cast<TokenId>(file.metadata().get_int(key, {0, c.n_vocab - 1}));
  }
  return info;
}

}  // namespace

struct Model::Impl {
  Impl(const std::string& path, const LoadOptions& options)
      : file(gguf::ModelFile::open(path)),
        model(file),
        info(make_info(file, model.config())),
        pool(std::make_unique<ThreadPool>(options.n_threads)) {
    info.weights = choose_memory(options.weights);
    if (info.weights == WeightMemory::copied) copy_weights(options);
    // Reading ahead what does not fit into memory would only push out its own beginning.
    if (info.weights == WeightMemory::mapped && options.progress &&
        info.file_bytes < free_memory().bytes) {
      file.populate(options.progress);
    }
  }

  // Memory that is free may still be refused, by a limit of this process.
  void copy_weights(const LoadOptions& options) {
    try {
      woven.emplace(model, *pool, options.progress);
    } catch (const Error& e) {
      if (options.weights == WeightMemory::copied || e.code() != Errc::out_of_memory) throw;
      info.weights = WeightMemory::mapped;
    }
  }

  WeightMemory choose_memory(WeightMemory wish) {
    if (wish != WeightMemory::automatic) return wish;
    const uint64_t n_bytes = engine::WovenWeights::bytes_for(model);
    const bool fits = engine::WovenWeights::leave_room(n_bytes, free_memory().bytes);
    return fits ? WeightMemory::copied : WeightMemory::mapped;
  }

  gguf::ModelFile file;
  model::Model model;
  ModelInfo info;
  std::unique_ptr<ThreadPool> pool;
  std::optional<engine::WovenWeights> woven;
};

Model Model::load(const std::string& path, const LoadOptions& options) {
  if (options.n_threads < 0 || options.n_threads > 1024) {
    throw Error(Errc::bad_request,
                cat(options.n_threads, " threads; expected 1 to 1024, or 0 for one per core"));
  }
  return Model(std::make_shared<const Impl>(path, options));
}

const ModelInfo& Model::info() const { return impl_->info; }

struct Session::Impl {
  enum class Phase { prefill, decode };

  Impl(std::shared_ptr<const Model::Impl> m, const SessionOptions& o, int ctx)
      : model(std::move(m)), options(o), n_ctx(ctx) {
    engine::RouteOverride reroute;
    if (options.reroute) {
      reroute = [this](LayerId layer, int64_t n_rows, const backend::RoutingView& routing) {
        for (int64_t r = 0; r < n_rows; ++r) {
          options.reroute(
              first_pos + static_cast<int>(r), layer.value,
              {routing.experts + r * routing.n_used, static_cast<size_t>(routing.n_used)});
        }
      };
    }
    if (options.device.kind == DeviceKind::sim) {
      auto steps = std::make_unique<engine::DeviceSteps>(model->file, model->model, *model->pool,
                                                         options, n_ctx, std::move(reroute));
      device = steps.get();
      driver = std::move(steps);
    } else {
      const engine::KvOptions kv =
          engine::kv_options({.n_ctx = n_ctx,
                              .k_type = engine::planned_type(options.k_type),
                              .v_type = engine::planned_type(options.v_type)});
      driver = std::make_unique<engine::Stepper>(model->model, backend::make_cpu_ops(*model->pool),
                                                 kv, std::min(options.prefill_chunk, n_ctx),
                                                 std::move(reroute));
    }
    stats.kv_bytes = driver->kv_bytes();
  }

  int n_tokens() const { return driver->n_tokens(kOnlySequence); }
  void require_valid(std::span<const TokenId> tokens) const;
  void require_finite(int pos, std::span<const float> logits) const;
  void append(std::span<const TokenId> tokens, Phase phase, const OnLogits& on_logits);
  void append_chunk(std::span<const TokenId> chunk, bool is_last, const OnLogits& on_logits);
  void give_routing(std::span<const TokenId> chunk, Phase phase);

  std::shared_ptr<const Model::Impl> model;  // shared with the Model: the longer-lived keeps it
  SessionOptions options;
  int n_ctx;
  int first_pos = 0;  // of the step under way
  std::unique_ptr<engine::StepDriver> driver;
  engine::DeviceSteps* device = nullptr;  // the driver, where it is one
  Stats stats;
  std::vector<engine::StepRow> rows;
  std::vector<float> last_logits;  // of the newest token; empty where none are known
  double seconds_in_callback = 0.0;
  PlacementInfo placement;
  std::vector<int32_t> routed_experts;
  std::vector<float> routed_weights;
};

// Before anything is computed, so that a bad request leaves the session as it was.
void Session::Impl::require_valid(std::span<const TokenId> tokens) const {
  if (tokens.size() > static_cast<size_t>(n_ctx - n_tokens())) {
    throw Error(Errc::bad_request,
                cat(tokens.size(), " tokens do not fit into the context: it holds ", n_ctx, " and ",
                    n_tokens(), " are in use; ask for a larger context (-c) or give fewer tokens"));
  }
  for (const TokenId token : tokens) {
    if (token >= 0 && token < model->info.n_vocab) continue;
    throw Error(Errc::bad_request, cat("token id ", token, " is out of range; expected 0 to ",
                                       model->info.n_vocab - 1));
  }
}

void Session::Impl::append(std::span<const TokenId> tokens, Phase phase,
                           const OnLogits& on_logits) {
  require_valid(tokens);
  const double start = driver->seconds();
  seconds_in_callback = 0.0;
  const auto chunk = static_cast<size_t>(driver->max_rows());
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t n = std::min(chunk, tokens.size() - begin);
    append_chunk(tokens.subspan(begin, n), begin + n == tokens.size(), on_logits);
    if (options.on_routing) give_routing(tokens.subspan(begin, n), phase);
  }
  const double seconds = driver->seconds() - start - seconds_in_callback;
  if (phase == Phase::prefill) {
    stats.n_prefill_tokens += std::ssize(tokens);
    stats.prefill_seconds += seconds;
  } else {
    stats.n_decode_tokens += std::ssize(tokens);
    stats.decode_seconds += seconds;
  }
}

void Session::Impl::append_chunk(std::span<const TokenId> chunk, bool is_last,
                                 const OnLogits& on_logits) {
  rows.clear();
  for (const TokenId token : chunk) rows.push_back({token, kOnlySequence, bool(on_logits)});
  if (is_last) rows.back().wants_logits = true;
  const int first = first_pos = n_tokens();
  last_logits.clear();
  try {
    driver->step(rows, [&](int64_t row, std::span<const float> logits) {
      const double before = driver->seconds();
      require_finite(first + static_cast<int>(row), logits);
      if (on_logits) on_logits(first + static_cast<int>(row), logits);
      if (row + 1 == std::ssize(rows)) last_logits.assign(logits.begin(), logits.end());
      seconds_in_callback += driver->seconds() - before;
    });
  } catch (const Error& e) {
    // A step that a device could not finish leaves the text as it was.
    if (e.code() == Errc::device) driver->truncate(kOnlySequence, first);
    throw;
  }
}

void Session::Impl::give_routing(std::span<const TokenId> chunk, Phase phase) {
  const engine::RoutingLog& log = driver->log();
  const int n_used = model->info.n_experts_used;
  for (size_t r = 0; r < chunk.size(); ++r) {
    routed_experts.clear();
    routed_weights.clear();
    for (int layer = 0; layer < log.n_layers(); ++layer) {
      for (const policy::RoutedExpert& routed :
           log.routed(LayerId(layer))
               .subspan(r * static_cast<size_t>(n_used), static_cast<size_t>(n_used))) {
        routed_experts.push_back(routed.expert.value);
        routed_weights.push_back(routed.weight);
      }
    }
    options.on_routing({chunk[r], phase == Phase::prefill, n_used, routed_experts, routed_weights});
  }
}

// A number that is not finite anywhere in a token's path ends up in its logits.
void Session::Impl::require_finite(int pos, std::span<const float> logits) const {
  if (std::ranges::all_of(logits, [](float l) { return std::isfinite(l); })) return;
  throw Error(
      Errc::bad_file,
      cat(model->file.metadata().origin(), ": the logits at position ", pos,
          " are not finite; the weights are damaged (see sluice inspect --check-tensors) or "
          "overflow the KV type"));
}

Session::Session(const Model& model, const SessionOptions& options) {
  const ModelInfo& info = model.info();
  if (options.n_ctx < 0 || options.prefill_chunk < 1) {
    throw Error(
        Errc::bad_request,
        cat("a context of ", options.n_ctx, " tokens, computed ", options.prefill_chunk,
            " at a time; expected a context of 1 or more (0: default) in chunks of 1 or more"));
  }
  const int n_ctx = options.n_ctx > 0 ? options.n_ctx : std::min(info.n_ctx_train, kDefaultContext);
  impl_ = std::make_unique<Impl>(model.impl_, options, n_ctx);
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::append(std::span<const TokenId> tokens, const OnLogits& on_logits) {
  impl_->append(tokens, Impl::Phase::prefill, on_logits);
}

GenerateResult Session::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                 const std::function<bool(TokenId)>& on_token) {
  if (prompt.empty() && impl_->last_logits.empty()) {
    throw Error(Errc::bad_request, "the prompt is empty; give at least one token to continue from");
  }
  append(prompt);
  GenerateResult result;
  while (std::ssize(result.tokens) < options.n_tokens) {
    const TokenId token =
        options.choose ? options.choose(impl_->last_logits) : sampler::greedy(impl_->last_logits);
    if (std::ranges::find(options.end_tokens, token) != options.end_tokens.end()) {
      result.reason = StopReason::end_of_text;
      break;
    }
    result.tokens.push_back(token);
    const bool go_on = !on_token || on_token(token);
    if (n_tokens() == n_ctx()) {
      result.reason = StopReason::context_full;
      break;
    }
    impl_->append({&token, 1}, Impl::Phase::decode, {});
    if (!go_on) {
      result.reason = StopReason::callback;
      break;
    }
  }
  return result;
}

void Session::truncate(int n_tokens) {
  if (n_tokens < 0 || n_tokens > this->n_tokens()) {
    throw Error(Errc::bad_request, cat("cannot keep ", n_tokens, " of ", this->n_tokens(),
                                       " tokens; expected a number from 0 to that"));
  }
  if (n_tokens == this->n_tokens()) return;
  impl_->driver->truncate(kOnlySequence, n_tokens);
  impl_->last_logits.clear();
}

int Session::n_tokens() const { return impl_->n_tokens(); }
int Session::n_ctx() const { return impl_->n_ctx; }
const Stats& Session::stats() const { return impl_->stats; }

const PlacementInfo& Session::placement() const {
  if (impl_->device) impl_->placement = impl_->device->placement();
  return impl_->placement;
}

ExpertStats Session::expert_stats() const {
  return impl_->device ? impl_->device->stats() : ExpertStats{};
}

}  // namespace sluice
