// See step_block.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/step_block.h"

#include <algorithm>

#include "base/carver.h"
#include "base/check.h"

namespace sluice::engine {

StepBlock::Places StepBlock::places(const StepBlockSize& size, std::byte* base, int64_t width) {
  Carver carver(base);
  Places p;
  p.head = carver.take<Head>(1);
  p.changes = carver.take<backend::TableChange>(kTableChanges);
  p.page_table = carver.take<int32_t>(size.table_size);
  p.states_from = carver.take<int32_t>(size.n_states);
  p.states_to = carver.take<int32_t>(size.n_states);
  p.tokens = carver.take<TokenId>(width);
  p.positions = carver.take<int32_t>(width);
  p.sequences = carver.take<int32_t>(width);
  p.logit_rows = carver.take<int32_t>(width);
  p.angles = carver.take<float>(width * size.n_rot);
  p.x = carver.take<float>(width * size.d_model);
  p.n_bytes = carver.n_bytes();
  p.forced = carver.take<int32_t>(std::min<int64_t>(width, kNarrowRows) * size.n_routes);
  p.all_bytes = carver.n_bytes();
  return p;
}

StepBlock::StepBlock(backend::Device& device, const StepBlockSize& size, DeviceBlock& device_memory)
    : size_(size),
      image_(device.allocate(backend::MemoryKind::mapped, step_block_bytes(size))),
      twin_(device_memory.take(step_block_bytes(size))) {
  CHECK(places(size, nullptr, size.max_rows).all_bytes == step_block_bytes(size));
}

backend::RowsView StepBlock::input(int64_t width) const {
  return {places(size_, image_.data(), width).x, width, size_.d_model};
}

int32_t* StepBlock::forced_input(int64_t width) const {
  CHECK(width <= kNarrowRows);
  return places(size_, image_.data(), width).forced;
}

void StepBlock::write(const StepRows& rows, const KvCache& cache, const Values& values,
                      int64_t width) {
  const backend::StepView from = rows.view(cache);
  CHECK(from.n_rows <= width && width <= size_.max_rows);
  const Places to = places(size_, image_.data(), width);
  CHECK(to.head && std::ssize(values.changes) <= kTableChanges);
  *to.head = {.step = values.step,
              .n_live = *from.n_live,
              .n_logits = *from.n_logits,
              .n_best = *from.n_best,
              .n_changes = static_cast<int32_t>(values.changes.size()),
              .link_share = values.link_share};
  std::ranges::copy(values.changes, to.changes);
  std::copy_n(from.page_table, size_.table_size, to.page_table);
  CHECK(std::ssize(values.states_from) == size_.n_states);
  std::ranges::copy(values.states_from, to.states_from);
  std::ranges::copy(values.states_to, to.states_to);
  const auto padded = [&](const auto* source, auto* place, int64_t n_cols) {
    std::copy_n(source, from.n_rows * n_cols, place);
    std::fill(place + from.n_rows * n_cols, place + width * n_cols, 0);
  };
  padded(from.tokens, to.tokens, 1);
  padded(from.positions, to.positions, 1);
  padded(from.sequences, to.sequences, 1);
  padded(from.angles, to.angles, size_.n_rot);
  std::copy_n(from.logit_rows, *from.n_logits, to.logit_rows);
  std::fill(to.x + from.n_rows * size_.d_model, to.x + width * size_.d_model, 0.0f);
}

void StepBlock::copy(backend::Stream& stream, int64_t width, bool with_forced) const {
  const Places at = places(size_, nullptr, width);
  stream.copy(twin_, image_.data(), with_forced ? at.all_bytes : at.n_bytes);
}

const int32_t* StepBlock::forced(int64_t width) const { return places(size_, twin_, width).forced; }

backend::StepView StepBlock::view(int64_t width, int64_t table_stride) const {
  const Places at = places(size_, twin_, width);
  return {.n_rows = width,
          .n_live = &at.head->n_live,
          .tokens = at.tokens,
          .positions = at.positions,
          .sequences = at.sequences,
          .angles = at.angles,
          .page_table = at.page_table,
          .table_stride = table_stride,
          .n_logits = &at.head->n_logits,
          .logit_rows = at.logit_rows,
          .n_best = &at.head->n_best};
}

backend::RowsView StepBlock::x(int64_t width) const {
  return {places(size_, twin_, width).x, width, size_.d_model};
}

const uint32_t* StepBlock::step() const { return &places(size_, twin_, 1).head->step; }
const int32_t* StepBlock::n_live() const { return &places(size_, twin_, 1).head->n_live; }
const float* StepBlock::link_share() const { return &places(size_, twin_, 1).head->link_share; }

backend::StateLayerView StepBlock::states(backend::StateLayerView layer) const {
  const Places at = places(size_, twin_, 1);
  layer.from = at.states_from;
  layer.to = at.states_to;
  return layer;
}

backend::TableChangesView StepBlock::changes(const std::byte** table) const {
  const Places at = places(size_, twin_, 1);
  return {&at.head->n_changes, at.changes, table};
}

}  // namespace sluice::engine
