// See expert_copies.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/expert_copies.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace sluice::engine {
namespace {

constexpr int kPoison = 0xff;  // as a scale: not a number

}  // namespace

ExpertCopies::ExpertCopies(backend::Device& device, backend::Stream& main, const ExpertSlots& slots,
                           const model::Model& model, const policy::ExpertCache& cache,
                           const ExpertCopyOptions& options)
    : slots_(slots),
      model_(model),
      main_(main),
      options_(options),
      copies_(device.make_stream("expert copies")),
      left_(device.make_event()) {
  size_t n_slots = 0;
  for (int pool = 0; pool < cache.n_pools(); ++pool) {
    n_slots += static_cast<size_t>(cache.n_slots(pool));
  }
  pending_.resize(n_slots);
  for (Pending& p : pending_) p.arrived = device.make_event();
  const size_t n_experts = static_cast<size_t>(model.config().n_experts);
  main_.run([&slots, n_layers = model.layers().size(), n_experts] {
    std::fill_n(&slots.entry({LayerId(0), ExpertId(0)}), n_layers * n_experts, nullptr);
  });
}

ExpertCopies::~ExpertCopies() = default;

void ExpertCopies::boundary(std::span<const policy::Move> moves) {
  publish_arrived();
  if (moves.empty()) return;
  for (const policy::Move& move : moves) {
    if (!move.evicts) continue;
    // It may not have arrived yet: then it was never there.
    const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_);
    const auto found =
        std::find_if(pending_.begin(), end, [&](const Pending& p) { return p.key == move.out; });
    if (found != end) std::swap(*found, pending_[--n_pending_]);
    main_.run([&slots = slots_, key = move.out] { slots.entry(key) = nullptr; });
  }
  main_.record(*left_);
  copies_->wait(*left_);
  for (const policy::Move& move : moves) begin(move);
}

void ExpertCopies::publish_arrived() {
  for (size_t i = 0; i < n_pending_;) {
    if (!pending_[i].arrived->is_done()) {
      ++i;
      continue;
    }
    main_.wait(*pending_[i].arrived);
    main_.run([&slots = slots_, key = pending_[i].key, slot = pending_[i].slot] {
      slots.entry(key) = slot;
    });
    std::swap(pending_[i], pending_[--n_pending_]);
  }
}

void ExpertCopies::begin(const policy::Move& move) {
  CHECK(n_pending_ < pending_.size());
  Pending& pending = pending_[n_pending_++];
  pending.key = move.in;
  pending.slot = slots_.slot(move.pool, move.slot);
  if (options_.poison) {
    const uint64_t n_bytes = slots_.layout(move.in.layer).n_bytes;
    copies_->run([slot = pending.slot, n_bytes] { std::memset(slot, kPoison, n_bytes); });
  }
  copy(move.in, pending.slot);
  copies_->record(*pending.arrived);
}

void ExpertCopies::copy(policy::ExpertKey key, std::byte* slot) {
  const backend::ExpertsView& host = model_.layers()[static_cast<size_t>(key.layer.value)].experts;
  const backend::ExpertLayout& layout = slots_.layout(key.layer);
  const auto part = [&](const backend::WeightView& stack, uint64_t at) {
    const backend::WeightView matrix = stack.matrix(key.expert.value);
    copies_->copy(slot + at, matrix.data, matrix.matrix_bytes());
    copied_bytes_ += matrix.matrix_bytes();
  };
  part(host.gate, 0);
  part(host.up, layout.up_at);
  part(host.down, layout.down_at);
}

void ExpertCopies::finish() {
  copies_->finish();
  publish_arrived();
  main_.finish();
}

}  // namespace sluice::engine
