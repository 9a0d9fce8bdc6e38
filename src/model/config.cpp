// See config.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "gguf/in_quotes.h"

namespace sluice::model {
namespace {

constexpr gguf::IntRange kSizes{1, 1 << 20};
constexpr int kMaxExperts = 1024;
constexpr int kMaxLayers = 4096;

RopeConfig read_rope(const ConfigReader& in, const Config& c) {
  RopeConfig rope;
  rope.n_rot = in.size_or("rope.dimension_count", c.head_dim);
  if (rope.n_rot % 2 != 0 || rope.n_rot > c.head_dim) {
    in.refuse(cat(in.key("rope.dimension_count"), " is ", rope.n_rot,
                  "; expected an even number up to the head size ", c.head_dim));
  }
  rope.base = in.number_or("rope.freq_base", rope.base);
  rope.factor = in.number_or("rope.scaling.factor", in.number_or("rope.scale_linear", 1.0f));
  if (rope.factor == 0.0f) rope.factor = 1.0f;
  rope.n_ctx_original = in.size_or("rope.scaling.original_context_length", c.n_ctx_train);
  rope.attn_factor = in.number_or("rope.scaling.attn_factor", 1.0f);
  if (!(rope.base > 1.0f) || !(rope.factor > 0.0f)) {
    in.refuse(cat("rope base ", rope.base, " and scaling factor ", rope.factor,
                  "; expected a base above 1 and a factor above 0"));
  }
  const std::string kind = in.metadata().get_string_or(in.key("rope.scaling.type"), "linear");
  if (kind == "none") {
    rope.scaling = RopeScaling::none;
  } else if (kind == "linear") {
    rope.scaling = RopeScaling::linear;
  } else if (kind == "yarn") {
    rope.scaling = RopeScaling::yarn;
  } else {
    in.refuse(cat(in.key("rope.scaling.type"), " is ", gguf::in_quotes(kind),
                  "; expected none, linear or yarn"));
  }
  return rope;
}

int vocabulary_size(const ConfigReader& in) {
  if (const gguf::Value* tokens = in.metadata().find("tokenizer.ggml.tokens")) {
    const size_t n = gguf::is_array(*tokens) ? gguf::n_elems_of(*tokens) : 0;
    if (n >= 1 && n <= static_cast<size_t>(kSizes.max)) return static_cast<int>(n);
    in.refuse(cat("tokenizer.ggml.tokens holds ", n, " tokens; expected 1 to ", kSizes.max));
  }
  return in.size("vocab_size");
}

void read_networks(const ConfigReader& in, Networks networks, Config& c) {
  c.n_experts =
      static_cast<int>(in.metadata().get_int_or(in.key("expert_count"), 0, {0, kSizes.max}));
  c.is_dense = c.n_experts == 0;
  if (c.is_dense && networks == Networks::experts) {
    in.refuse(cat("a dense model (no ", in.key("expert_count"), "); of architecture '",
                  in.architecture(), "' sluice runs Mixture-of-Experts models alone"));
  }
  if (c.is_dense) {
    c.n_experts = c.n_experts_used = 1;
    return;
  }
  if (networks == Networks::dense) {
    in.refuse(cat(in.key("expert_count"), " is ", c.n_experts,
                  "; expected a dense model, without experts, of this architecture"));
  }
  c.n_experts_used = in.size("expert_used_count");
  if (c.n_experts > kMaxExperts || c.n_experts_used > c.n_experts) {
    in.refuse(cat(c.n_experts_used, " of ", c.n_experts, " experts used; expected at most ",
                  kMaxExperts, " experts and no more used than there are"));
  }
}

}  // namespace

ConfigReader::ConfigReader(const gguf::Metadata& metadata)
    : metadata_(metadata), architecture_(metadata.get_string("general.architecture")) {}

int ConfigReader::size(std::string_view name) const {
  return static_cast<int>(metadata_.get_int(key(name), kSizes));
}

int ConfigReader::size_or(std::string_view name, int fallback) const {
  return has(name) ? size(name) : fallback;
}

int ConfigReader::same_in_all_layers(std::string_view name, int n_layers) const {
  const auto values = metadata_.get_int_per_layer(key(name), n_layers, kSizes);
  const auto [least, most] = std::ranges::minmax(values);
  if (least != most) {
    refuse(cat(key(name), " differs between layers (", least, " to ", most,
               "); sluice needs the same number in all"));
  }
  return static_cast<int>(least);
}

float ConfigReader::number(std::string_view name) const { return metadata_.get_float(key(name)); }

float ConfigReader::number_or(std::string_view name, float fallback) const {
  return metadata_.get_float_or(key(name), fallback);
}

void ConfigReader::refuse(const std::string& text) const {
  throw Error(Errc::unsupported_model, cat(metadata_.origin(), ": ", text));
}

Config read_common_config(const ConfigReader& in, Networks networks) {
  Config c;
  c.architecture = in.architecture();
  c.name = in.metadata().get_string_or("general.name", "");
  c.n_layers = in.size("block_count");
  if (c.n_layers > kMaxLayers) {
    in.refuse(cat(in.key("block_count"), " is ", c.n_layers, "; expected at most ", kMaxLayers));
  }
  c.n_ctx_train = static_cast<int>(in.metadata().get_int(in.key("context_length"), {1, 1 << 30}));
  c.d_model = in.size("embedding_length");
  c.n_heads = in.same_in_all_layers("attention.head_count", c.n_layers);
  c.n_kv_heads = in.has("attention.head_count_kv")
                     ? in.same_in_all_layers("attention.head_count_kv", c.n_layers)
                     : c.n_heads;
  if (c.n_heads % c.n_kv_heads != 0) {
    in.refuse(cat(c.n_heads, " heads over ", c.n_kv_heads,
                  " key-value heads; expected a whole number of heads for each"));
  }
  if (!in.has("attention.key_length") && c.d_model % c.n_heads != 0) {
    in.refuse(cat("embedding length ", c.d_model, " is not a multiple of the ", c.n_heads,
                  " heads and ", in.key("attention.key_length"), " is missing"));
  }
  c.head_dim = in.size_or("attention.key_length", std::max(1, c.d_model / c.n_heads));
  c.v_head_dim = in.size_or("attention.value_length", c.head_dim);
  c.norm_eps = in.number("attention.layer_norm_rms_epsilon");
  if (!(c.norm_eps >= 0.0f)) in.refuse(cat("norm epsilon is ", c.norm_eps, "; expected 0 or more"));
  c.rope = read_rope(in, c);
  c.n_vocab = vocabulary_size(in);
  read_networks(in, networks, c);
  c.memory.assign(
      static_cast<size_t>(c.n_layers),
      {.n_kv_heads = c.n_kv_heads, .k_head_dim = c.head_dim, .v_head_dim = c.v_head_dim});
  return c;
}

int dense_width(const ConfigReader& in, const Config& c) {
  return in.same_in_all_layers("feed_forward_length", c.n_layers);
}

int expert_width(const ConfigReader& in, const Config& c) {
  if (in.has("expert_feed_forward_length")) {
    return in.same_in_all_layers("expert_feed_forward_length", c.n_layers);
  }
  return std::max(1, dense_width(in, c) / c.n_experts_used);
}

int shared_expert_width(const ConfigReader& in, const Config& c) {
  constexpr std::string_view kKey = "expert_shared_feed_forward_length";
  return in.has(kKey) ? in.same_in_all_layers(kKey, c.n_layers) : dense_width(in, c);
}

int shared_experts_width(const ConfigReader& in, const Config& c) {
  const std::string key = in.key("expert_shared_count");
  return c.d_ff * static_cast<int>(in.metadata().get_int_or(key, 1, {1, kMaxExperts}));
}

void read_mtp(const ConfigReader& in, Config& c) {
  c.n_mtp_blocks = static_cast<int>(
      in.metadata().get_int_or(in.key("nextn_predict_layers"), 0, {0, c.n_layers - 1}));
  c.n_layers -= c.n_mtp_blocks;
}

void read_leading_dense(const ConfigReader& in, Config& c) {
  c.n_dense_layers = static_cast<int>(
      in.metadata().get_int_or(in.key("leading_dense_block_count"), 0, {0, c.n_layers}));
  if (c.n_dense_layers > 0) c.d_ff_dense = dense_width(in, c);
}

void require_equal_heads(const ConfigReader& in, const Config& c) {
  if (c.v_head_dim == c.head_dim) return;
  in.refuse(cat("values of length ", c.v_head_dim, " beside keys of ", c.head_dim,
                "; expected equal lengths"));
}

void require_plain_heads(const ConfigReader& in, const Config& c) {
  require_equal_heads(in, c);
  if (c.rope.n_rot == c.head_dim) return;
  in.refuse(cat(in.key("rope.dimension_count"), " is ", c.rope.n_rot, "; expected the head size ",
                c.head_dim, " for this architecture"));
}

bool turns_in_text(const std::array<int, 4>& sections, int j) {
  const int n_all = sections[0] + sections[1] + sections[2] + sections[3];
  if (n_all == 0) return true;
  const int sector = j % n_all;
  return sector < 3 * sections[static_cast<size_t>(sector % 3)];
}

// theta_j = base^(-2j/n_rot). linear divides all by the factor; YaRN divides only the slow pairs,
// with a ramp between the pairs that turn beta_slow and beta_fast times in the original context.
std::vector<float> rope_frequencies(const RopeConfig& rope) {
  constexpr double kBetaFast = 32.0;
  constexpr double kBetaSlow = 1.0;
  constexpr double kTwoPi = 6.283185307179586;
  const double n_rot = rope.n_rot;
  const auto pair_that_turns = [&](double times) {
    return n_rot * std::log(rope.n_ctx_original / (kTwoPi * times)) / (2.0 * std::log(rope.base));
  };
  const double low = std::max(0.0, std::floor(pair_that_turns(kBetaFast)));
  const double high = std::min(n_rot - 1.0, std::ceil(pair_that_turns(kBetaSlow)));

  std::vector<float> frequencies(static_cast<size_t>(rope.n_rot / 2));
  for (size_t j = 0; j < frequencies.size(); ++j) {
    const double theta =
        std::pow(static_cast<double>(rope.base), -2.0 * static_cast<double>(j) / n_rot);
    double keep = 1.0;  // share of the unscaled frequency
    if (rope.scaling == RopeScaling::linear) keep = 0.0;
    if (rope.scaling == RopeScaling::yarn) {
      const double place = (static_cast<double>(j) - low) / std::max(0.001, high - low);
      keep = 1.0 - std::clamp(place, 0.0, 1.0);
    }
    frequencies[j] = static_cast<float>(theta / rope.factor * (1.0 - keep) + theta * keep);
    if (!turns_in_text(rope.sections, static_cast<int>(j))) frequencies[j] = 0.0f;
  }
  return frequencies;
}

float rope_magnitude(const RopeConfig& rope) {
  if (rope.scaling != RopeScaling::yarn) return rope.attn_factor;
  return rope.attn_factor * (1.0f + 0.1f * std::log(rope.factor));
}

}  // namespace sluice::model
