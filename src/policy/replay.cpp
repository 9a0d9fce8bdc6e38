// See replay.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/replay.h"

#include <algorithm>

#include "policy/replay_account.h"

namespace sluice::policy {

namespace {

double milliseconds(double bytes, double gbps) { return bytes / (gbps * 1e6); }

}  // namespace

double CostModel::copy_cost() const {
  const double saved = 1.0 / cpu_gbps - 1.0 / gpu_gbps;  // per byte and use
  return saved > 0.0 ? copy_interference / cpu_gbps / saved : 0.0;
}

ReplayAccount::ReplayAccount(const RoutingShape& shape, const CostModel& cost)
    : shape_(shape),
      cost_(cost),
      lookups_(static_cast<size_t>(shape.n_layers), 0),
      hits_(static_cast<size_t>(shape.n_layers), 0) {}

void ReplayAccount::layer(int layer, int n_hits, int n_misses) {
  if (!counted_) return;
  const auto l = static_cast<size_t>(layer);
  lookups_[l] += static_cast<uint64_t>(n_hits + n_misses);
  hits_[l] += static_cast<uint64_t>(n_hits);
  const auto bytes = static_cast<double>(shape_.expert_bytes[l]);
  const double gpu = milliseconds(n_hits * bytes, cost_.gpu_gbps);
  const double cpu = milliseconds(n_misses * bytes, cost_.cpu_gbps);
  const double handshake = n_misses > 0 ? cost_.handshake_us * 1e-3 : 0.0;
  sum_.time.gpu_ms += gpu;
  sum_.time.cpu_ms += cpu;
  sum_.time.handshake_ms += handshake;
  step_ms_ += std::max(gpu, cpu + handshake);
}

void ReplayAccount::end_step(uint64_t n_copies, uint64_t copied_bytes) {
  if (!counted_) return;
  ++sum_.n_tokens;
  sum_.n_copies += n_copies;
  sum_.copied_bytes += copied_bytes;
  const auto bytes = static_cast<double>(copied_bytes);
  const double slowed = milliseconds(cost_.copy_interference * bytes, cost_.cpu_gbps);
  const double copy = milliseconds(bytes, cost_.link_gbps);
  const double wait = std::max(0.0, copy - step_ms_ - slowed);
  sum_.time.cpu_ms += slowed;
  sum_.time.copy_ms += copy;
  sum_.time.copy_wait_ms += wait;
  sum_.time.total_ms += step_ms_ + slowed + wait;
  step_ms_ = 0.0;
}

ReplayResult ReplayAccount::result() const {
  ReplayResult result = sum_;
  for (size_t l = 0; l < lookups_.size(); ++l) {
    result.n_lookups += lookups_[l];
    result.n_hits += hits_[l];
    result.layer_hit_rate.push_back(
        lookups_[l] == 0 ? 0.0 : static_cast<double>(hits_[l]) / static_cast<double>(lookups_[l]));
  }
  const double per_token = result.n_tokens == 0 ? 0.0 : 1.0 / static_cast<double>(result.n_tokens);
  for (double* ms : {&result.time.gpu_ms, &result.time.cpu_ms, &result.time.handshake_ms,
                     &result.time.copy_ms, &result.time.copy_wait_ms, &result.time.total_ms}) {
    *ms *= per_token;
  }
  return result;
}

StepSource steps_of(const RoutingTrace& trace) {
  return [&trace, i = size_t{0}](RoutingStep& step) mutable {
    if (i == trace.steps.size()) return false;
    step = trace.steps[i++];
    return true;
  };
}

ReplayResult replay(const RoutingShape& shape, const StepSource& next, ExpertCache& cache,
                    const CostModel& cost) {
  ReplayAccount account(shape, cost);
  RoutingStep step;
  while (next(step)) {
    account.begin_step(step.phase);
    cache.begin_step(step.phase);
    for (int l = 0; l < shape.n_layers; ++l) {
      const auto routed = step.layer(l);
      const int n_hits = cache.touch(LayerId(l), routed);
      account.layer(l, n_hits, static_cast<int>(routed.size()) - n_hits);
    }
    const uint64_t bytes_before = cache.counts().copied_bytes;
    const size_t n_copies = cache.end_step().size();
    account.end_step(n_copies, cache.counts().copied_bytes - bytes_before);
  }
  return account.result();
}

ReplayResult replay(const RoutingShape& shape, const StepSource& next, CacheOptions options,
                    double share, const CostModel& cost) {
  options.n_experts = shape.n_experts;
  options.layers = share_slots(shape, share);
  ExpertCache cache(options);
  return replay(shape, next, cache, cost);
}

}  // namespace sluice::policy
