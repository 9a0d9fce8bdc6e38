// See replay_account.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/replay_account.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::policy {

namespace {

double milliseconds(double bytes, double gbps) { return bytes / (gbps * 1e6); }

// What a use of a resident expert saves, per byte.
double saved_by(const CostModel& cost) {
  return std::max(0.0, 1.0 / cost.cpu_gbps - 1.0 / cost.gpu_gbps);
}

}  // namespace

double CostModel::copy_cost() const {
  const double saved = saved_by(*this);
  return saved > 0.0 ? copy_interference / cpu_gbps / saved : 0.0;
}

double CostModel::wait_cost() const {
  const double saved = saved_by(*this);
  return saved > 0.0 && !streams_misses ? 1.0 / link_gbps / saved : 0.0;
}

ReplayAccount::ReplayAccount(const RoutingShape& shape, std::span<const CostModel> costs)
    : shape_(shape),
      lookups_(static_cast<size_t>(shape.n_layers), 0),
      hits_(static_cast<size_t>(shape.n_layers), 0) {
  for (const CostModel& cost : costs) machines_.push_back({cost, 0.0, {}});
}

void ReplayAccount::layer(int layer, int n_hits, int n_misses) {
  if (!counted_) return;
  const auto l = static_cast<size_t>(layer);
  lookups_[l] += static_cast<uint64_t>(n_hits + n_misses);
  hits_[l] += static_cast<uint64_t>(n_hits);
  const uint64_t missed = static_cast<uint64_t>(n_misses) * shape_.expert_bytes[l];
  missed_bytes_ += missed;
  const auto miss_bytes = static_cast<double>(missed);
  const double hit_bytes = n_hits * static_cast<double>(shape_.expert_bytes[l]);
  for (auto& [cost, step_ms, sum] : machines_) {
    const double gpu = milliseconds(hit_bytes, cost.gpu_gbps);
    const double handshake = n_misses > 0 ? cost.handshake_us * 1e-3 : 0.0;
    sum.gpu_ms += gpu;
    sum.handshake_ms += handshake;
    if (cost.streams_misses) {  // the GPU computes hits while the others come
      const double copy = milliseconds(miss_bytes, cost.link_gbps);
      const double late = milliseconds(miss_bytes, cost.gpu_gbps);
      sum.gpu_ms += late;
      sum.copy_ms += copy;
      sum.copy_wait_ms += std::clamp(handshake + copy - gpu, 0.0, copy);
      step_ms += std::max(gpu, handshake + copy) + late;
    } else {
      const double cpu = milliseconds(miss_bytes, cost.cpu_gbps);
      sum.cpu_ms += cpu;
      step_ms += std::max(gpu, cpu + handshake);
    }
  }
}

uint64_t ReplayAccount::hidden_bytes() const {
  if (machines_.empty()) return 0;
  const auto& [cost, step_ms, sum] = machines_[0];
  return static_cast<uint64_t>(step_ms * cost.link_gbps * 1e6);
}

void ReplayAccount::end_step(uint64_t n_copies, uint64_t copied_bytes) {
  if (!counted_) return;
  ++n_tokens_;
  n_copies_ += n_copies;
  copied_bytes_ += copied_bytes;
  const auto bytes = static_cast<double>(copied_bytes);
  for (auto& [cost, step_ms, sum] : machines_) {
    if (!cost.streams_misses) {
      const double slowed = milliseconds(cost.copy_interference * bytes, cost.cpu_gbps);
      const double copy = milliseconds(bytes, cost.link_gbps);
      step_ms += slowed;
      const double wait = std::max(0.0, copy - step_ms);
      sum.cpu_ms += slowed;
      sum.copy_ms += copy;
      sum.copy_wait_ms += wait;
      step_ms += wait;
    }
    sum.total_ms += step_ms;
    step_ms = 0.0;
  }
}

ReplayResult ReplayAccount::result(size_t machine) const {
  CHECK(machine < machines_.size());
  const bool streams = machines_[machine].cost.streams_misses;
  ReplayResult result;
  result.time = machines_[machine].sum;
  result.n_tokens = n_tokens_;
  for (size_t l = 0; l < lookups_.size(); ++l) {
    result.n_lookups += lookups_[l];
    result.n_hits += hits_[l];
    result.layer_hit_rate.push_back(
        lookups_[l] == 0 ? 0.0 : static_cast<double>(hits_[l]) / static_cast<double>(lookups_[l]));
  }
  result.n_copies = streams ? result.n_lookups - result.n_hits : n_copies_;
  result.copied_bytes = streams ? missed_bytes_ : copied_bytes_;
  const double per_token = n_tokens_ == 0 ? 0.0 : 1.0 / static_cast<double>(n_tokens_);
  for (double* ms : {&result.time.gpu_ms, &result.time.cpu_ms, &result.time.handshake_ms,
                     &result.time.copy_ms, &result.time.copy_wait_ms, &result.time.total_ms}) {
    *ms *= per_token;
  }
  return result;
}

}  // namespace sluice::policy
