// See pricing_speed.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/pricing_speed.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "base/miss_split.h"

namespace sluice::policy {
namespace {

constexpr double kGiga = 1e9;

// A machine and a step, in bytes, operations and seconds.
class Clock {
 public:
  Clock(const ModelShape& model, const Hardware& hardware, const Workload& work)
      : n_used_(model.n_experts_used),
        sequence_{.n_ctx = work.forecast_depth(),
                  .k_type = work.k_type,
                  .v_type = work.v_type,
                  .prefill_chunk = work.prefill_chunk},
        chunk_(work.prefill_chunk),
        gpu_(hardware.gpu_gbps * kGiga),
        link_(hardware.link_gbps * kGiga),
        cpu_(hardware.cpu_gbps * kGiga),
        cpu_kv_(hardware.cpu_kv_gbps > 0.0 ? hardware.cpu_kv_gbps * kGiga : cpu_),
        cpu_kv_prompt_(hardware.cpu_kv_prompt_gbps * kGiga),
        gpu_ops_(gpu_ * kGpuOpsPerByte),
        cpu_ops_(hardware.cpu_gops > 0.0 ? hardware.cpu_gops * kGiga
                                         : hardware.n_cores * kCpuCoreOps),
        handshake_(hardware.handshake_us * 1e-6),
        experts_(hardware.experts_us * 1e-6),
        interference_(hardware.copy_interference) {}

  double handshake() const { return handshake_; }

  // One token.
  double decode_cpu_layer(const LayerShape& layer) const {
    return kCpuLayerSeconds + (trunk_bytes(layer) + used_bytes(layer)) / cpu_ +
           kv_bytes_at(layer, sequence_.n_ctx) / cpu_kv_;
  }
  // The trunk, then the experts, by how many of them are missing: were the calls independent, that
  // would be so for m of them with probability C(used, m) (1 - hits)^m hits^(used - m).
  double decode_gpu_layer(const LayerShape& layer, double hits, double link_share) const {
    double seconds =
        kGpuLayerSeconds + (trunk_bytes(layer) + kv_bytes_at(layer, sequence_.n_ctx)) / gpu_;
    const int n = used(layer);
    double n_ways = 1.0;  // C(n, m)
    for (int m = 0; m <= n; ++m) {
      const double chance = n_ways * std::pow(1.0 - hits, m) * std::pow(hits, n - m);
      seconds += chance * expert_seconds(layer, m, link_share);
      n_ways *= static_cast<double>(n - m) / (m + 1);
    }
    return seconds;
  }
  double output(const ModelShape& model, bool on_gpu) const {
    return static_cast<double>(model.output_bytes) / (on_gpu ? gpu_ : cpu_);
  }

  // A chunk: bytes are read once, so either they or the operations take the time. Attention goes
  // through the keys and values for every row of it, the mean one in the chunk's middle.
  double prefill_cpu_layer(const LayerShape& layer) const {
    const double attention =
        cpu_kv_prompt_ > 0.0
            ? chunk_ * kv_bytes_at(layer, sequence_.n_ctx + chunk_ / 2) / cpu_kv_prompt_
            : 0.0;
    return kCpuLayerSeconds + attention +
           on_cpu(static_cast<double>(layer.trunk_bytes), trunk_ops(layer)) +
           on_cpu(touched_bytes(layer), expert_ops(layer));
  }
  // Missing experts stream over the link beside the work, or the CPU computes them.
  double prefill_gpu_layer(const LayerShape& layer, double resident) const {
    const double missing = 1.0 - resident;
    const double all = experts_ + on_gpu(touched_bytes(layer), expert_ops(layer));
    const double streamed = std::max(all, missing * touched_bytes(layer) / link_);
    const double split = experts_ + resident * (all - experts_) +
                         (missing > 0.0 ? handshake_ : 0.0) +
                         on_cpu(missing * touched_bytes(layer), missing * expert_ops(layer));
    return kGpuLayerSeconds + on_gpu(static_cast<double>(layer.trunk_bytes), trunk_ops(layer)) +
           (layer.n_experts == 0 ? 0.0 : std::min(streamed, split));
  }

 private:
  // Hits, what crosses the link, and the CPU's part go on beside each other; the slowest decides.
  // The link takes from the CPU what both read from the same memory.
  double expert_seconds(const LayerShape& layer, int n_misses, double link_share) const {
    const auto expert = static_cast<double>(layer.expert_bytes);
    const int n_hits = used(layer) - n_misses;
    const int n_link = link_reads(n_misses, static_cast<float>(link_share));
    const int n_cpu = n_misses - n_link;
    const double cpu =
        n_cpu > 0 ? handshake_ + (n_cpu + interference_ * n_link) * expert / cpu_ : 0.0;
    const double hits = used(layer) > 0 ? experts_ + n_hits * expert / gpu_ : 0.0;
    return std::max({hits, n_link * expert / link_, cpu});
  }
  double on_gpu(double bytes, double ops) const { return std::max(bytes / gpu_, ops / gpu_ops_); }
  double on_cpu(double bytes, double ops) const { return std::max(bytes / cpu_, ops / cpu_ops_); }
  int used(const LayerShape& layer) const { return std::min(n_used_, layer.n_experts); }
  double used_bytes(const LayerShape& layer) const {
    return used(layer) * static_cast<double>(layer.expert_bytes);
  }
  // What a token reads besides experts, keys and values; recurrent state is also written.
  double trunk_bytes(const LayerShape& layer) const {
    return static_cast<double>(layer.trunk_bytes) + 2.0 * static_cast<double>(layer.state_bytes);
  }
  double kv_bytes_at(const LayerShape& layer, int n_tokens) const {
    Workload work = sequence_;
    work.n_ctx = n_tokens;
    return static_cast<double>(kv_bytes(layer, work));
  }
  double trunk_ops(const LayerShape& layer) const {
    return 2.0 * static_cast<double>(layer.trunk_elems) * chunk_;
  }
  double expert_ops(const LayerShape& layer) const {
    return 2.0 * used(layer) * static_cast<double>(layer.expert_elems) * chunk_;
  }
  // Of the experts a chunk meets at least once, were routing even.
  double touched_bytes(const LayerShape& layer) const {
    if (layer.n_experts == 0) return 0.0;
    const double share = static_cast<double>(used(layer)) / layer.n_experts;
    return layer.n_experts * (1.0 - std::pow(1.0 - share, chunk_)) *
           static_cast<double>(layer.expert_bytes);
  }

  int n_used_;
  Workload sequence_;  // one, so long as the tokens before those that are predicted
  int chunk_;
  double gpu_, link_, cpu_, cpu_kv_, cpu_kv_prompt_;  // bytes/s; the last may be 0: not counted
  double gpu_ops_, cpu_ops_;
  double handshake_;
  double experts_;  // of a layer's, besides their bytes
  double interference_;
};

}  // namespace

LocalityCurve LocalityCurve::typical() {
  return LocalityCurve({{0.0625, 0.43}, {0.125, 0.63}, {0.188, 0.75}, {0.25, 0.83}, {0.375, 0.92}});
}

LocalityCurve LocalityCurve::of(const RoutingProfile& profile) {
  constexpr int kPoints = 16;
  const auto n_experts = static_cast<size_t>(profile.n_experts());
  std::vector<float> rates = profile.rates();
  std::vector<double> hits(kPoints, 0.0);  // sums over layers, by share
  int n_layers = 0;
  for (size_t first = 0; first < rates.size(); first += n_experts) {
    const std::span<float> layer(rates.data() + first, n_experts);
    std::ranges::sort(layer, std::greater());
    const double all = std::accumulate(layer.begin(), layer.end(), 0.0);
    if (all <= 0.0) continue;
    ++n_layers;
    for (int p = 1; p < kPoints; ++p) {
      const double n = static_cast<double>(p) / kPoints * static_cast<double>(n_experts);
      const auto whole = static_cast<size_t>(n);
      double held =
          std::accumulate(layer.begin(), layer.begin() + static_cast<int64_t>(whole), 0.0);
      if (whole < n_experts) held += (n - std::floor(n)) * layer[whole];
      hits[static_cast<size_t>(p)] += held / all;
    }
  }
  CHECK(n_layers > 0);
  std::vector<Point> points;
  for (int p = 1; p < kPoints; ++p) {
    points.push_back(
        {static_cast<double>(p) / kPoints, std::min(hits[static_cast<size_t>(p)] / n_layers, 1.0)});
  }
  return LocalityCurve(points);
}

LocalityCurve::LocalityCurve(std::vector<Point> points) : points_(std::move(points)) {
  points_.insert(points_.begin(), {0.0, 0.0});
  points_.push_back({1.0, 1.0});
  for (size_t i = 1; i < points_.size(); ++i) {
    CHECK(points_[i].resident > points_[i - 1].resident && points_[i].hits >= points_[i - 1].hits);
  }
}

double LocalityCurve::hits(double resident) const {
  if (resident >= 1.0) return 1.0;
  const auto next =
      std::ranges::upper_bound(points_, std::max(resident, 0.0), {}, &Point::resident);
  const auto before = std::prev(next);
  const double way = (resident - before->resident) / (next->resident - before->resident);
  return before->hits + way * (next->hits - before->hits);
}

double step_seconds(const Hardware& hardware, bool uses_gpu) {
  const double device = uses_gpu ? hardware.launch_us + hardware.readback_us : 0.0;
  return (device + hardware.sampling_us) * 1e-6;
}

Speed predict(const ModelShape& model, const Hardware& hardware, const Workload& work,
              const Placement& place, const LocalityCurve& locality) {
  const Clock clock(model, hardware, work);
  const int n_cpu_layers = model.n_layers() - place.n_gpu_layers;
  const bool uses_gpu = place.n_gpu_layers > 0;
  double decode = clock.output(model, uses_gpu);
  double prefill = decode;
  decode += step_seconds(hardware, uses_gpu);
  double hits_sum = 0.0;
  int n_routed = 0;
  for (int i = 0; i < model.n_layers(); ++i) {
    const LayerShape& layer = model.layers[static_cast<size_t>(i)];
    if (i < n_cpu_layers) {
      decode += clock.decode_cpu_layer(layer);
      prefill += clock.prefill_cpu_layer(layer);
      continue;
    }
    const double resident =
        layer.n_experts == 0
            ? 1.0
            : static_cast<double>(place.n_slots[static_cast<size_t>(i)]) / layer.n_experts;
    const double hits = locality.hits(resident);
    decode += clock.decode_gpu_layer(layer, hits, place.link_share);
    prefill += clock.prefill_gpu_layer(layer, resident);
    if (layer.n_experts == 0) continue;
    hits_sum += hits;
    ++n_routed;
  }
  if (n_cpu_layers > 0 && uses_gpu) {  // the row crosses from the CPU to the GPU
    decode += clock.handshake();
    prefill += clock.handshake();
  }
  return {1.0 / decode, work.prefill_chunk / prefill, n_routed ? hits_sum / n_routed : 0.0};
}

}  // namespace sluice::policy
