// See segmented_lru.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/segmented_lru.h"

#include <algorithm>

namespace sluice::policy {

namespace {

constexpr double kProtected = 0x1p40;  // above every step

}  // namespace

SegmentedLru::SegmentedLru(const ReplacementShape& shape)
    : StoredValues(shape.n_total()), shape_(shape) {
  const size_t n = shape.n_total();
  const size_t n_pools = shape.pool_slots.size();
  segment_.assign(n, Segment::outside);
  n_protected_.assign(n_pools, 0);
  next_.resize(n + n_pools);
  for (size_t i = 0; i < next_.size(); ++i) next_[i] = static_cast<int>(i);
  previous_ = next_;
}

void SegmentedLru::link_last(int id) {
  const int head = shape_.n_layers * shape_.n_experts + pool_of(id);
  const int before = previous_[static_cast<size_t>(head)];
  next_[static_cast<size_t>(before)] = id;
  previous_[static_cast<size_t>(id)] = before;
  next_[static_cast<size_t>(id)] = head;
  previous_[static_cast<size_t>(head)] = id;
  ++n_protected_[static_cast<size_t>(pool_of(id))];
}

void SegmentedLru::unlink(int id) {
  const auto i = static_cast<size_t>(id);
  next_[static_cast<size_t>(previous_[i])] = next_[i];
  previous_[static_cast<size_t>(next_[i])] = previous_[i];
  --n_protected_[static_cast<size_t>(pool_of(id))];
}

// To the recent end of probation, as if it had come in now.
void SegmentedLru::demote_first(int pool) {
  const int id = next_[static_cast<size_t>(shape_.n_layers * shape_.n_experts + pool)];
  unlink(id);
  segment_[static_cast<size_t>(id)] = Segment::probation;
  values_[static_cast<size_t>(id)] = step_;
}

void SegmentedLru::observe(std::span<const Use> uses, bool) {
  ++step_;
  for (const Use& use : uses) {
    const auto i = static_cast<size_t>(use.id);
    values_[i] = step_ + 0.5 - use.rank / 2;
    if (segment_[i] == Segment::outside) continue;
    if (segment_[i] == Segment::protected_) unlink(use.id);
    segment_[i] = Segment::protected_;
    values_[i] += kProtected;
    link_last(use.id);
  }
  for (size_t pool = 0; pool < n_protected_.size(); ++pool) {
    while (n_protected_[pool] > shape_.pool_slots[pool] * 3 / 4)
      demote_first(static_cast<int>(pool));
  }
}

void SegmentedLru::evicted(int id) {
  if (segment_[static_cast<size_t>(id)] == Segment::protected_)
    unlink(id);  // its value is not read
  segment_[static_cast<size_t>(id)] = Segment::outside;
}

}  // namespace sluice::policy
