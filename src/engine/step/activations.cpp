// See activations.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/activations.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::engine {
namespace {

// Which forms of their input the experts of a model read.
struct InputFormats {
  bool f32 = false;
  bool q8 = false;
};

InputFormats formats_of(const model::Model& model) {
  InputFormats formats;
  for (const model::Layer& layer : model.layers()) {
    const auto& e = layer.experts;
    for (const backend::WeightView& w : {e.gate, e.up, e.shared_gate, e.shared_up}) {
      if (!w) continue;
      (quant::is_float(w.type) ? formats.f32 : formats.q8) = true;
    }
  }
  return formats;
}

}  // namespace

template <typename T>
T* ActivationsBuffer::allocate(const backend::Allocate& memory, int64_t n_rows, int64_t n_cols) {
  const auto n = static_cast<uint64_t>(n_rows) * static_cast<uint64_t>(n_cols);
  return buffers_.emplace_back(memory(n * sizeof(T))).template as<T>();
}

ActivationsBuffer::ActivationsBuffer(const backend::Allocate& memory, const model::Model& model,
                                     int max_rows, InputRows input_rows)
    : max_rows_(max_rows) {
  const model::Config& c = model.config();
  const auto rows = [&](int64_t n_rows, int64_t n_cols) {
    return backend::RowsView{allocate<float>(memory, n_rows, n_cols), n_rows, n_cols};
  };
  if (input_rows == InputRows::own) widest_.x = rows(max_rows, c.d_model);
  int64_t qkv_cols = 0, mixed_cols = 0;
  for (const model::Layer& layer : model.layers()) {
    const bool recurs{layer.delta_net};
    qkv_cols = std::max(qkv_cols, recurs ? layer.delta_net.in_cols() : layer.attention.qkv_cols());
    mixed_cols = std::max(mixed_cols, layer.attn_out.weight.n_cols);
  }
  widest_.qkv = rows(max_rows, qkv_cols);
  widest_.attention = rows(max_rows, mixed_cols);
  widest_.logits = rows(std::min(max_rows, kMaxLogitRows), c.n_vocab);

  const InputFormats formats = formats_of(model);
  auto& input = widest_.expert_input;
  input = {.n_rows = max_rows_, .n_cols = c.d_model};
  if (formats.f32) input.f32 = allocate<float>(memory, max_rows, c.d_model);
  if (formats.q8) {
    input.q = allocate<int8_t>(memory, max_rows, c.d_model);
    input.d = allocate<float>(memory, max_rows, c.d_model / 32);
    input.y = allocate<float>(memory, max_rows, c.d_model / 32);
  }
  widest_.routing = {c.n_experts_used, allocate<int32_t>(memory, max_rows, c.n_experts_used),
                     allocate<float>(memory, max_rows, c.n_experts_used),
                     allocate<float>(memory, max_rows, 1)};
}

model::Activations ActivationsBuffer::view(int64_t n_rows) const {
  CHECK(n_rows <= max_rows_);
  model::Activations s = widest_;
  s.x.n_rows = s.qkv.n_rows = s.attention.n_rows = s.expert_input.n_rows = n_rows;
  return s;
}

}  // namespace sluice::engine
