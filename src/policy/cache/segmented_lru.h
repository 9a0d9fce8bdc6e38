// Segmented LRU: newcomers are on probation; a hit promotes them to the protected segment, which
// holds three quarters of the pool's slots and gives its least recent one back to probation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/cache/replacement.h"

namespace sluice::policy {

class SegmentedLru : public StoredValues {
 public:
  explicit SegmentedLru(const ReplacementShape& shape);

  void observe(std::span<const Use> uses, bool is_token) override;
  void admitted(int id) override { segment_[static_cast<size_t>(id)] = Segment::probation; }
  void evicted(int id) override;

 private:
  enum class Segment : uint8_t { outside, probation, protected_ };

  int pool_of(int id) const { return shape_.pool_of[static_cast<size_t>(id / shape_.n_experts)]; }
  void link_last(int id);
  void unlink(int id);
  void demote_first(int pool);

  ReplacementShape shape_;
  double step_ = 0.0;
  std::vector<Segment> segment_;
  // The protected ones of each pool as a ring, the least recent first; its head is the number
  // n_total + pool.
  std::vector<int> next_, previous_;
  std::vector<int> n_protected_;  // by pool
};

}  // namespace sluice::policy
