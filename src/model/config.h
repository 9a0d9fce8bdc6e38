// What a model file says about the model's shape, read once and checked: counts, widths, and the
// rules that differ between architectures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/views.h"
#include "gguf/metadata.h"

namespace sluice::model {

enum class RopeScaling { none, linear, yarn };

// What layers have behind attention: experts and a router, or one network that all tokens use. Of
// some architectures there are files of either kind.
enum class Networks { experts, dense, either };

struct RopeConfig {
  backend::RopePairing pairing = backend::RopePairing::halves;
  int n_rot = 0;
  float base = 10000.0f;
  RopeScaling scaling = RopeScaling::none;
  float factor = 1.0f;       // how many times the original context
  int n_ctx_original = 0;    // before scaling
  float attn_factor = 1.0f;  // extra factor of the magnitude
  // Of positions in images, how the pairs are dealt out to time, height, width and a fourth that is
  // 0 in text. All 0: every pair turns by the position.
  std::array<int, 4> sections = {};
};

// What a layer keeps of the tokens before: keys and values, or a state of fixed size.
struct LayerMemory {
  int n_kv_heads = 0;  // compressed keys and values (MLA) are one head of keys
  int k_head_dim = 0;
  int v_head_dim = 0;
  int window = 0;             // tokens a sliding layer looks back; 0: all
  uint64_t state_bytes = 0;   // of a recurrent layer, for one sequence
  uint64_t update_bytes = 0;  // what a token did to it (DeltaNetView::update_values)
};

// Compressed keys and values. q_rank 0: queries are not compressed.
struct MlaConfig {
  int q_rank = 0;
  int kv_rank = 0;
  int k_dim = 0;  // of a head, its turning part included
  int v_dim = 0;
};

struct DeltaNetConfig {
  int n_taps = 0;  // of the convolution
  int n_key_heads = 0;
  int n_value_heads = 0;
  int head_dim = 0;

  int64_t value_cols() const { return int64_t{n_value_heads} * head_dim; }
  int64_t conv_cols() const { return 2 * int64_t{n_key_heads} * head_dim + value_cols(); }
};

struct Config {
  std::string architecture;
  std::string name;
  int n_layers = 0;
  int d_model = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;    // of queries and keys
  int v_head_dim = 0;  // of values; the same wherever a model runs
  int n_vocab = 0;
  int n_ctx_train = 0;
  int n_experts = 0;
  int n_experts_used = 0;
  bool is_dense = false;  // without a router: the network is the one expert of its layer
  int d_ff = 0;           // of one expert
  int d_ff_shared = 0;    // of the shared expert; 0 where there is none
  float norm_eps = 0.0f;
  RopeConfig rope;
  std::vector<LayerMemory> memory;  // by layer, MTP blocks last

  DeltaNetConfig delta_net;
  int n_mtp_blocks = 0;  // behind the layers: they predict further tokens, and are not run

  // Of architectures that can be planned for only.
  int n_dense_layers = 0;  // the first ones, with a dense network instead of experts
  int d_ff_dense = 0;
  MlaConfig mla;

  int64_t q_cols() const { return int64_t{n_heads} * head_dim; }
  int64_t kv_cols() const { return int64_t{n_kv_heads} * head_dim; }
};

// Reads the keys "<architecture>.<name>", with the file named in every error.
class ConfigReader {
 public:
  explicit ConfigReader(const gguf::Metadata& metadata);

  const gguf::Metadata& metadata() const { return metadata_; }
  const std::string& architecture() const { return architecture_; }
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  bool has(std::string_view name) const { return metadata_.contains(key(name)); }

  // A size of the model: at least 1, and small enough that products of three fit into 64 bits.
  int size(std::string_view name) const;
  int size_or(std::string_view name, int fallback) const;
  // One number for all layers; an array must hold n_layers times the same.
  int same_in_all_layers(std::string_view name, int n_layers) const;
  float number(std::string_view name) const;
  float number_or(std::string_view name, float fallback) const;

  // "<file>: <text>", as Errc::unsupported_model.
  [[noreturn]] void refuse(const std::string& text) const;

 private:
  const gguf::Metadata& metadata_;
  std::string architecture_;
};

// What all architectures share, as the attention-MoE models need it: memory is that of attention in
// every layer, d_ff and d_ff_shared are left to the architecture. A dense network is one expert
// that is always chosen, with a weight of 1, so n_experts and n_experts_used are 1 there.
Config read_common_config(const ConfigReader& in, Networks networks = Networks::experts);

// expert_feed_forward_length, by default feed_forward_length / n_experts_used (the Qwen family).
int expert_width(const ConfigReader& in, const Config& c);
// feed_forward_length itself, of dense models and where there is no key for experts alone.
int dense_width(const ConfigReader& in, const Config& c);
// expert_shared_feed_forward_length, by default feed_forward_length.
int shared_expert_width(const ConfigReader& in, const Config& c);

// expert_shared_count experts of the others' width, side by side as one.
int shared_experts_width(const ConfigReader& in, const Config& c);

// nextn_predict_layers of the blocks are no layers.
void read_mtp(const ConfigReader& in, Config& c);
// leading_dense_block_count and their width.
void read_leading_dense(const ConfigReader& in, Config& c);

// For architectures whose keys and values are equally long; and those whose heads turn as a whole,
// too.
void require_equal_heads(const ConfigReader& in, const Config& c);
void require_plain_heads(const ConfigReader& in, const Config& c);

// Whether pair j turns in a text: of interleaved sections every third pair is time's, height's or
// width's, which count the same there; a pair that is none of theirs stays as it is.
bool turns_in_text(const std::array<int, 4>& sections, int j);

// The turning frequencies of the n_rot / 2 pairs, scaling folded in, and the magnitude.
std::vector<float> rope_frequencies(const RopeConfig& rope);
float rope_magnitude(const RopeConfig& rope);

}  // namespace sluice::model
