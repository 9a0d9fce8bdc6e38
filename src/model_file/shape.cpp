// See shape.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/shape.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "gguf/in_quotes.h"
#include "model/config.h"

namespace sluice::model_file {
namespace {

using gguf::TensorInfo;
using policy::LayerShape;
using policy::ModelShape;

constexpr int kMaxLayers = 4096;

// "12.attn_q.weight" -> 12 and "attn_q.weight"; nothing where no number and dot come first.
struct Numbered {
  int number;
  std::string_view rest;
};
std::optional<Numbered> leading_number(std::string_view text) {
  Numbered out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return {};
  out.rest = text.substr(static_cast<size_t>(end + 1 - text.data()));
  return out;
}

uint64_t n_elems(const TensorInfo& tensor) {
  uint64_t n = 1;
  for (const int64_t dim : tensor.shape) n *= static_cast<uint64_t>(dim);
  return n;
}

// A dimension as an int; a file cannot make it overflow.
int width(int64_t dim) { return static_cast<int>(std::min<int64_t>(dim, 1 << 30)); }

// As memory holds it: 16-bit vectors are widened, and everything stands on a boundary.
uint64_t held_bytes(const TensorInfo& tensor) {
  const auto type = static_cast<quant::Type>(tensor.type->id);
  const bool is_vector = tensor.shape.size() == 1 && quant::is_float(type);
  return round_up(is_vector ? sizeof(float) * n_elems(tensor) : tensor.n_bytes,
                  policy::kTensorAlignment);
}

// Rows of all matrices of a tensor, the values it puts out; 0 for a vector.
uint64_t n_rows(const TensorInfo& tensor) {
  if (tensor.shape.size() < 2 || tensor.shape[0] == 0) return 0;
  return n_elems(tensor) / static_cast<uint64_t>(tensor.shape[0]);
}

// A layer's tensors by what follows "blk.<i>.".
using LayerTensors = std::map<std::string_view, const TensorInfo*>;

const TensorInfo* find(const LayerTensors& tensors, std::string_view name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

class ShapeReader {
 public:
  ShapeReader(const gguf::Metadata& metadata, std::span<const TensorInfo> tensors);
  ModelShape read();

 private:
  void sort_tensors();
  LayerShape read_layer(int i);
  void read_experts(const LayerTensors& tensors, int i, LayerShape& layer);
  bool is_routed(std::string_view name, const TensorInfo& tensor) const;
  void read_attention(const LayerTensors& tensors, int i, LayerShape& layer) const;
  void read_recurrence(const LayerTensors& tensors, LayerShape& layer) const;
  int window_of(int i) const;
  void read_ends();

  model::ConfigReader in_;
  std::span<const TensorInfo> tensors_;
  int n_blocks_;  // layers and MTP blocks
  int n_mtp_;
  int n_experts_;
  std::vector<LayerTensors> blocks_;
  std::vector<const TensorInfo*> others_;
  ModelShape shape_;
};

ShapeReader::ShapeReader(const gguf::Metadata& metadata, std::span<const TensorInfo> tensors)
    : in_(metadata), tensors_(tensors) {
  n_blocks_ = in_.size("block_count");
  n_mtp_ = static_cast<int>(
      metadata.get_int_or(in_.key("nextn_predict_layers"), 0, {0, std::max(0, n_blocks_ - 1)}));
  if (n_blocks_ > kMaxLayers) {
    in_.refuse(cat(in_.key("block_count"), " is ", n_blocks_, "; expected at most ", kMaxLayers));
  }
  n_experts_ = static_cast<int>(metadata.get_int_or(in_.key("expert_count"), 0, {0, 1 << 20}));
}

void ShapeReader::sort_tensors() {
  blocks_.resize(static_cast<size_t>(n_blocks_));
  constexpr std::string_view kBlock = "blk.";
  for (const TensorInfo& tensor : tensors_) {
    const std::string_view name = tensor.name;
    const auto numbered =
        name.starts_with(kBlock) ? leading_number(name.substr(kBlock.size())) : std::nullopt;
    if (!numbered) {
      others_.push_back(&tensor);
      continue;
    }
    if (numbered->number < 0 || numbered->number >= n_blocks_) {
      in_.refuse(cat("tensor ", gguf::in_quotes(name), " belongs to no layer; expected 0 to ",
                     n_blocks_ - 1, " (", in_.key("block_count"), ")"));
    }
    blocks_[static_cast<size_t>(numbered->number)].emplace(numbered->rest, &tensor);
  }
}

// Stacks of experts, their biases and scales; or, in very old files, "ffn_gate.<expert>.weight".
// What all experts share (a single scale) stays in the trunk.
bool ShapeReader::is_routed(std::string_view name, const TensorInfo& tensor) const {
  for (const std::string_view part : {"ffn_gate", "ffn_up", "ffn_down", "ffn_gate_up"}) {
    if (!name.starts_with(part)) continue;
    const std::string_view rest = name.substr(part.size());
    if (rest.starts_with("_exps.")) {
      return name.ends_with(".weight") || (!tensor.shape.empty() && tensor.shape.back() > 1);
    }
    if (rest.starts_with(".") && leading_number(rest.substr(1))) return true;
  }
  return false;
}

void ShapeReader::read_experts(const LayerTensors& tensors, int i, LayerShape& layer) {
  uint64_t n_bytes = 0;
  uint64_t n_values = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!is_routed(name, *tensor)) continue;
    const bool stacked = name.find("_exps.") != std::string_view::npos;
    if (stacked && (n_experts_ == 0 || tensor->shape.back() != n_experts_)) {
      in_.refuse(cat("tensor ", gguf::in_quotes(tensor->name), " stacks ", tensor->shape.back(),
                     " experts; expected ", n_experts_, " (", in_.key("expert_count"), ")"));
    }
    n_bytes += tensor->n_bytes;
    if (name.ends_with(".weight")) n_values += n_elems(*tensor);
    if (name.starts_with("ffn_down") && name.ends_with(".weight")) {
      shape_.d_ff = std::max(shape_.d_ff, width(tensor->dim(0)));
    }
  }
  if (n_bytes == 0) return;
  const auto n = static_cast<uint64_t>(n_experts_);
  if (n == 0 || n_bytes % n != 0) {
    in_.refuse(cat("layer ", i, " has ", n_bytes, " bytes of experts; expected ", n_experts_,
                   " of equal size"));
  }
  layer.n_experts = n_experts_;
  layer.expert_bytes = n_bytes / n;
  layer.expert_elems = n_values / n;
}

// Sliding layers of gpt-oss: of every `pattern` layers all but the last, or those an array marks.
int ShapeReader::window_of(int i) const {
  if (in_.architecture() != "gpt-oss") return 0;
  const int window = in_.size("attention.sliding_window");
  const std::string key = in_.key("attention.sliding_window_pattern");
  if (const gguf::Value* value = in_.metadata().find(key); value && gguf::is_array(*value)) {
    return in_.metadata().get_int_per_layer(key, n_blocks_)[static_cast<size_t>(i)] ? window : 0;
  }
  const int64_t pattern = in_.metadata().get_int_or(key, 2, {1, 1 << 20});
  return i % pattern < pattern - 1 ? window : 0;
}

void ShapeReader::read_attention(const LayerTensors& tensors, int i, LayerShape& layer) const {
  if (const TensorInfo* mla = find(tensors, "attn_kv_a_mqa.weight")) {
    layer.n_kv_heads = 1;  // the compressed row serves keys and values
    layer.k_head_dim = width(mla->dim(1));
    return;
  }
  if (!find(tensors, "attn_k.weight") && !find(tensors, "attn_qkv.weight")) return;
  constexpr gguf::IntRange kHeads{0, 1 << 20};  // 0: a layer without attention
  const auto per_layer = [&](std::string_view name) {
    return in_.metadata().get_int_per_layer(in_.key(name), n_blocks_,
                                            kHeads)[static_cast<size_t>(i)];
  };
  const int64_t n_heads = per_layer("attention.head_count");
  const int usual = static_cast<int>(shape_.d_model / std::max<int64_t>(n_heads, 1));
  layer.n_kv_heads = static_cast<int>(
      in_.has("attention.head_count_kv") ? per_layer("attention.head_count_kv") : n_heads);
  layer.k_head_dim = in_.size_or("attention.key_length", usual);
  layer.v_head_dim = in_.size_or("attention.value_length", usual);
  layer.window = window_of(i);
  if (const TensorInfo* k = find(tensors, "attn_k.weight");
      k && k->dim(1) != int64_t{layer.n_kv_heads} * layer.k_head_dim) {
    in_.refuse(cat("tensor ", gguf::in_quotes(k->name), " puts out ", k->dim(1),
                   " values; expected ", layer.n_kv_heads, " key-value heads of ",
                   layer.k_head_dim));
  }
}

// Gated DeltaNet: the convolution's last inputs, and a matrix for every value head, in f32.
void ShapeReader::read_recurrence(const LayerTensors& tensors, LayerShape& layer) const {
  const TensorInfo* conv = find(tensors, "ssm_conv1d.weight");
  if (!conv) return;
  const auto taps = static_cast<uint64_t>(std::max<int64_t>(conv->dim(0), 1));
  const uint64_t inner = static_cast<uint64_t>(in_.size("ssm.inner_size"));
  const uint64_t width = static_cast<uint64_t>(in_.size("ssm.state_size"));
  layer.state_bytes = 4 * ((taps - 1) * static_cast<uint64_t>(conv->dim(1)) + inner * width);
}

LayerShape ShapeReader::read_layer(int i) {
  const LayerTensors& tensors = blocks_[static_cast<size_t>(i)];
  if (tensors.empty()) {
    in_.refuse(cat("layer ", i, " has no tensors; expected some for each of ", n_blocks_, " (",
                   in_.key("block_count"), ")"));
  }
  LayerShape layer;
  uint64_t row = 0;
  for (const auto& [name, tensor] : tensors) {
    if (is_routed(name, *tensor)) continue;
    layer.trunk_bytes += held_bytes(*tensor);
    layer.trunk_elems += n_elems(*tensor);
    row += n_rows(*tensor);
    if (name == "attn_output.weight" || name == "ssm_out.weight")
      row += static_cast<uint64_t>(tensor->dim(0));
    const bool is_ffn =
        name.starts_with("ffn_gate") || name.starts_with("ffn_up") || name.starts_with("ffn_down");
    const bool is_router = name.starts_with("ffn_gate_inp.") || name.find("_exps.") != name.npos;
    if (is_ffn && !is_router) layer.shared_bytes += held_bytes(*tensor);
  }
  shape_.widest_row = std::max(shape_.widest_row, row);
  read_experts(tensors, i, layer);
  read_recurrence(tensors, layer);
  if (layer.state_bytes == 0) read_attention(tensors, i, layer);
  return layer;
}

// What stands before the first layer and behind the last.
void ShapeReader::read_ends() {
  const TensorInfo* embedding = nullptr;
  bool has_output = false;
  for (const TensorInfo* tensor : others_) {
    if (tensor->name == "token_embd.weight") {
      embedding = tensor;
      continue;
    }
    has_output |= tensor->name == "output.weight";
    shape_.output_bytes += held_bytes(*tensor);
    shape_.output_elems += n_elems(*tensor);
  }
  if (!embedding) in_.refuse("tensor 'token_embd.weight' is missing");
  shape_.n_vocab = width(embedding->dim(1));
  shape_.embedding_bytes = embedding->n_bytes;
  shape_.tied = !has_output;
  if (!shape_.tied) return;
  shape_.output_bytes += held_bytes(*embedding);
  shape_.output_elems += n_elems(*embedding);
}

ModelShape ShapeReader::read() {
  shape_.architecture = in_.architecture();
  shape_.name = in_.metadata().get_string_or("general.name", "");
  shape_.d_model = in_.size("embedding_length");
  shape_.n_ctx_train =
      static_cast<int>(in_.metadata().get_int(in_.key("context_length"), {1, 1 << 30}));
  if (n_experts_ > 0) {
    shape_.n_experts_used =
        static_cast<int>(in_.metadata().get_int(in_.key("expert_used_count"), {1, n_experts_}));
  }
  sort_tensors();
  read_ends();
  for (int i = 0; i < n_blocks_; ++i) {
    (i < n_blocks_ - n_mtp_ ? shape_.layers : shape_.mtp).push_back(read_layer(i));
  }
  return std::move(shape_);
}

}  // namespace

ModelShape read_shape(const gguf::Metadata& metadata, std::span<const TensorInfo> tensors) {
  return ShapeReader(metadata, tensors).read();
}

ModelShape read_shape(const gguf::ModelFile& file) {
  return read_shape(file.metadata(),
                    std::vector<TensorInfo>(file.tensors().begin(), file.tensors().end()));
}

}  // namespace sluice::model_file
