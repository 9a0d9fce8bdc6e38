// See shape.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/shape.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/expert_slot.h"
#include "gguf/in_quotes.h"
#include "model/file_source.h"
#include "model/model.h"
#include "model_file/recorder.h"

namespace sluice::model_file {
namespace {

using gguf::TensorInfo;
using model::Role;
using policy::LayerShape;
using policy::ModelShape;

// "blk.12.attn_q.weight" -> 12; nothing where a tensor stands outside the layers.
std::optional<int> block_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return {};
  name.remove_prefix(kBlock.size());
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return {};
  return number;
}

// "blk.0.attn_q.weight", "blk.0.attn_q.scale" -> "blk.0.attn_q": what belongs to one matrix.
std::string_view stem_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

uint64_t n_elems(const TensorInfo& tensor) {
  uint64_t n = 1;
  for (const int64_t dim : tensor.shape) n *= static_cast<uint64_t>(dim);
  return n;
}

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

class ShapeReader {
 public:
  ShapeReader(const gguf::Metadata& metadata, std::span<const TensorInfo> tensors);
  ModelShape read();

 private:
  void bind();
  void sort_tensors();
  Role role_of(const TensorInfo& tensor) const;
  LayerShape read_block(size_t i);
  void read_ends();

  model::ConfigReader in_;
  const model::Architecture& architecture_;
  model::Config config_;
  std::span<const TensorInfo> tensors_;
  std::unordered_map<std::string_view, const TensorInfo*> by_name_;
  // By name, and of experts' stacks by stem as well.
  std::unordered_map<std::string, Role> roles_;
  std::vector<int64_t> mixed_cols_;  // by block: what attention or recurrence hands on
  uint64_t widest_out_ = 0;
  std::vector<std::vector<const TensorInfo*>> blocks_;
  std::vector<const TensorInfo*> others_;
  ModelShape shape_;
};

ShapeReader::ShapeReader(const gguf::Metadata& metadata, std::span<const TensorInfo> tensors)
    : in_(metadata),
      architecture_(model::described_architecture_of(in_)),
      config_(architecture_.read_config(in_)),
      tensors_(tensors) {
  for (const TensorInfo& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
}

// Asks the architecture for its tensors, and checks those of the file against them.
void ShapeReader::bind() {
  Recorder recorder([&](const std::string& name) { return by_name_.contains(name); });
  const model::BoundTensors bound = bind_all(architecture_, config_, {}, recorder);
  for (const model::Layer& layer : bound.layers) {
    mixed_cols_.push_back(layer.attn_out.weight.n_cols);
  }
  for (const model::TensorRequest& request : recorder.requests()) {
    const auto found = by_name_.find(request.name);
    check_tensor(in_.metadata().origin(), request,
                 found == by_name_.end() ? nullptr : found->second);
    roles_.emplace(request.name, request.role);
    if (request.role == Role::expert) roles_.emplace(stem_of(request.name), request.role);
  }
}

void ShapeReader::sort_tensors() {
  blocks_.resize(config_.memory.size());
  for (const TensorInfo& tensor : tensors_) {
    if (architecture_.may_have_vision && model::is_vision_tensor(tensor.name)) continue;
    const std::optional<int> block = block_of(tensor.name);
    if (!block) {
      others_.push_back(&tensor);
      continue;
    }
    if (*block < 0 || *block >= std::ssize(blocks_)) {
      in_.refuse(cat("tensor ", gguf::in_quotes(tensor.name),
                     " belongs to no layer; expected 0 to ", blocks_.size() - 1, " (",
                     in_.key("block_count"), ")"));
    }
    blocks_[static_cast<size_t>(*block)].push_back(&tensor);
  }
}

// A tensor that the architecture does not ask for cannot run, but takes its room: as part of the
// experts where it has a value for each of them, such as their scales, and else of the trunk.
Role ShapeReader::role_of(const TensorInfo& tensor) const {
  if (const auto asked = roles_.find(tensor.name); asked != roles_.end()) return asked->second;
  const auto kin = roles_.find(std::string(stem_of(tensor.name)));
  const bool is_experts = kin != roles_.end() && !tensor.shape.empty() && tensor.shape.back() > 1 &&
                          tensor.shape.back() == config_.n_experts;
  return is_experts ? Role::expert : Role::trunk;
}

LayerShape ShapeReader::read_block(size_t i) {
  const model::LayerMemory& memory = config_.memory[i];
  LayerShape layer{.n_kv_heads = memory.n_kv_heads,
                   .k_head_dim = memory.k_head_dim,
                   .v_head_dim = memory.v_head_dim,
                   .window = memory.window,
                   .state_bytes = memory.state_bytes,
                   .update_bytes = memory.update_bytes};
  uint64_t row = 0;  // what its matrices put out
  const auto n_experts = static_cast<uint64_t>(config_.n_experts);
  uint64_t expert_bytes = 0, expert_elems = 0;
  for (const TensorInfo* tensor : blocks_[i]) {
    const Role role = role_of(*tensor);
    if (role == Role::expert) {
      const bool is_matrix = tensor->name.ends_with(".weight");
      const uint64_t n_bytes = tensor->n_bytes / n_experts;
      expert_bytes += is_matrix ? slot_part_bytes(n_bytes) : n_bytes;
      if (is_matrix) expert_elems += n_elems(*tensor);
      continue;
    }
    layer.trunk_bytes += held_bytes(*tensor);
    layer.trunk_elems += n_elems(*tensor);
    if (role == Role::shared) layer.shared_bytes += held_bytes(*tensor);
    row += n_rows(*tensor);
  }
  if (config_.is_dense) {  // the router's zeros, which no file holds
    const auto d_model = static_cast<uint64_t>(config_.d_model);
    layer.trunk_bytes += round_up(sizeof(float) * d_model, policy::kTensorAlignment);
    layer.trunk_elems += d_model;
    ++row;
  }
  widest_out_ = std::max(widest_out_, row);
  shape_.mixed_cols = std::max(shape_.mixed_cols, static_cast<uint64_t>(mixed_cols_[i]));
  shape_.widest_row = widest_out_ + shape_.mixed_cols;  // layers share the memory of either
  if (expert_bytes > 0) layer.n_experts = config_.n_experts;
  layer.expert_bytes = expert_bytes;
  layer.expert_elems = expert_elems / n_experts;
  return layer;
}

// What stands before the first layer and behind the last.
void ShapeReader::read_ends() {
  const TensorInfo& embedding = *by_name_.at("token_embd.weight");
  for (const TensorInfo* tensor : others_) {
    if (tensor == &embedding) continue;
    shape_.output_bytes += held_bytes(*tensor);
    shape_.output_elems += n_elems(*tensor);
  }
  shape_.embedding_bytes = embedding.n_bytes;
  shape_.tied = !by_name_.contains("output.weight");
  if (!shape_.tied) return;
  shape_.output_bytes += held_bytes(embedding);
  shape_.output_elems += n_elems(embedding);
}

ModelShape ShapeReader::read() {
  shape_ = {.architecture = config_.architecture,
            .name = config_.name,
            .d_model = config_.d_model,
            .d_ff = config_.d_ff,
            .d_ff_shared = config_.d_ff_shared,
            .n_heads = config_.n_heads,
            .n_rot = config_.rope.n_rot / 2 * 2,
            .n_vocab = config_.n_vocab,
            .n_ctx_train = config_.n_ctx_train,
            .n_experts_used = config_.n_experts_used,
            .is_dense = config_.is_dense};
  bind();
  sort_tensors();
  read_ends();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_layer = static_cast<int>(i) < config_.n_layers;
    (is_layer ? shape_.layers : shape_.mtp).push_back(read_block(i));
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
