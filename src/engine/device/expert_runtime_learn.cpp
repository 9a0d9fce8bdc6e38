// What an ExpertRuntime (expert_runtime.h) makes of the log of a step: the policy's moves and the
// sums for people; and who brings the experts of a prompt, by the rates that it was given.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/device/expert_runtime.h"
#include "policy/plan/pricing_speed.h"

namespace sluice::engine {

std::span<const policy::Move> ExpertRuntime::learn(policy::Phase phase) {
  const bool is_decode = phase == policy::Phase::decode;
  const auto n_rows = static_cast<size_t>(rows_.n_rows());
  sum_.n_steps += is_decode;
  sum_.n_tokens += is_decode ? rows_.n_rows() : 0;
  if (!options_.logs) {  // every expert is where it stays
    for (LayerStats& layer : sum_.layers) {
      layer.n_hits += is_decode ? rows_.n_rows() * model_.config().n_experts_used : 0;
    }
    return {};
  }
  cache_.begin_step(phase, static_cast<int>(n_rows));
  for (int i = n_host_layers(); i < model_.config().n_layers; ++i) {
    const LayerId layer(i);
    if (is_decode) add_to_stats(i);
    const std::span<const RoutedExpert> routed = log_.routed(layer);
    const size_t n_used = routed.size() / n_rows;
    for (size_t r = 0; r < n_rows; ++r) {
      cache_.touch(layer, routed.subspan(r * n_used, n_used));
    }
  }
  return cache_.end_step(options_.hidden_bytes);
}

// By what the link and the CPU would need for them, were the rows spread evenly over all experts.
bool ExpertRuntime::prefers_link(LayerId layer, int n_missing) const {
  const policy::LayerShape& l = shape_.layers[static_cast<size_t>(layer.value)];
  const auto n_rows = static_cast<double>(rows_.n_rows());
  const double share = static_cast<double>(shape_.n_experts_used) / l.n_experts;
  const double bytes = static_cast<double>(policy::slot_bytes(l)) * n_missing *
                       (1.0 - std::pow(1.0 - share, n_rows));
  const double n_ops = 2.0 * static_cast<double>(l.expert_elems) * n_rows * share * n_missing;
  const double by_cpu = std::max(bytes / (options_.cpu_gbps * 1e9),
                                 n_ops / (host_threads_.n_threads() * policy::kCpuCoreOps));
  return bytes / (options_.link_gbps * 1e9) <= by_cpu;
}

void ExpertRuntime::add_to_stats(int layer) {
  const backend::LayerLog& log = log_.layer(LayerId(layer));
  LayerStats& sum = sum_.layers[static_cast<size_t>(layer)];
  sum.n_hits += log.n_hits, sum.n_staged += log.n_staged;
  sum.n_link += log.n_link, sum.n_cpu += log.n_cpu;
  sum.link_bytes += log.link_bytes;
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  sum.seconds += seconds(log.ns), sum.wait_seconds += seconds(log.wait_ns);
  sum.stall_seconds += seconds(log.stall_ns), sum.cpu_seconds += seconds(log.cpu_ns);
}

ExpertStats ExpertRuntime::stats() const {
  ExpertStats stats = sum_;
  stats.n_copies = copies_.n_copies();
  stats.copied_bytes = copies_.copied_bytes();
  stats.n_landed = copies_.n_landed();
  stats.streamed_bytes = waves_->copied_bytes();
  stats.n_failed_copies = copies_.n_failed();
  stats.n_prefetched = staging_->n_copies();
  const policy::PrefetchCounts& counts = staging_->counts();
  stats.useful_bytes = counts.useful_bytes;
  stats.late_bytes = counts.late_bytes;
  stats.wasted_bytes = counts.wasted_bytes;
  return stats;
}

}  // namespace sluice::engine
