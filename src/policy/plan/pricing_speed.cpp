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

using Distinct = LocalityCurve::Distinct;

// A machine and a step, in bytes, operations and seconds.
class Clock {
 public:
  Clock(const ModelShape& model, const Hardware& hardware, const Workload& work)
      : n_used_(model.n_experts_used),
        n_heads_(model.n_heads),
        n_cols_(model.d_model),
        sequence_{.n_ctx = work.forecast_depth(),
                  .k_type = work.k_type,
                  .v_type = work.v_type,
                  .prefill_chunk = work.prefill_chunk},
        chunk_(work.prefill_chunk),
        gpu_(hardware.gpu_gbps * kGiga),
        expert_rate_(model.is_dense ? std::min(gpu_, kNetworkRate) : gpu_),
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
  int used(const LayerShape& layer) const { return std::min(n_used_, layer.n_experts); }

  // Weights are read once for all rows, keys and values for each sequence.
  double decode_cpu_layer(const LayerShape& layer, const DecodeRows& rows,
                          const Distinct& experts) const {
    const int n_rows = rows.n_rows;
    const auto expert = static_cast<double>(layer.expert_bytes);
    const double trunk = trunk_bytes(layer);
    return kCpuLayerSeconds + rows_on_cpu(trunk, trunk_ops(layer, n_rows), trunk, n_rows) +
           rows_on_cpu(experts.sum() * expert, expert_ops(layer, n_rows), used(layer) * expert,
                       n_rows) +
           rows.n_sequences * kv_bytes_at(layer, sequence_.n_ctx) / cpu_kv_;
  }
  // The trunk, then the experts. Their number is a mean: of the whole numbers beside it, each
  // counts as far as the mean is from the other.
  double decode_gpu_layer(const LayerShape& layer, const DecodeRows& rows, const Distinct& experts,
                          double link_share, double resident, double copies) const {
    const double trunk =
        kGpuLayerSeconds +
        on_gpu(static_cast<double>(layer.trunk_bytes), trunk_ops(layer, rows.n_rows)) +
        attend_seconds(layer, rows.n_sequences) +
        rows.n_sequences * 2.0 * static_cast<double>(layer.state_bytes) /
            std::min(gpu_, kStateRate);
    if (layer.n_experts == 0) return trunk;
    const double missing = experts.sum() > 0.0 ? experts.misses / experts.sum() : 0.0;
    const int fewer = static_cast<int>(experts.sum());
    const double way = experts.sum() - fewer;
    Expected e;
    e.add(1.0 - way, expected(layer, fewer, missing, link_share));
    if (way > 0.0) e.add(way, expected(layer, fewer + 1, missing, link_share));
    const double lookup = resident < 1.0 ? kLookupSeconds : 0.0;
    // What was read over the link is in VRAM already (0023). Other copies take from the CPU what
    // both read from the same memory.
    const double crossing = experts.misses > 0.0 ? copies * (1.0 - e.n_read / experts.misses) : 0.0;
    const double copy =
        kCopySeconds + interference_ * static_cast<double>(layer.expert_bytes) / cpu_;
    return trunk + e.seconds + lookup + crossing * copy;
  }
  double output(const ModelShape& model, int n_rows, bool uses_gpu) const {
    const auto bytes = static_cast<double>(model.output_bytes);
    const double ops = 2.0 * static_cast<double>(model.output_elems) * n_rows;
    return uses_gpu ? on_gpu(bytes, ops) : rows_on_cpu(bytes, ops, bytes, n_rows);
  }

  // A chunk: bytes are read once, so either they or the operations take the time. Attention goes
  // through the keys and values for every row of it, the mean one in the chunk's middle.
  double prefill_cpu_layer(const LayerShape& layer) const {
    const double attention =
        cpu_kv_prompt_ > 0.0
            ? chunk_ * kv_bytes_at(layer, sequence_.n_ctx + chunk_ / 2) / cpu_kv_prompt_
            : 0.0;
    return kCpuLayerSeconds + attention +
           on_cpu(static_cast<double>(layer.trunk_bytes), trunk_ops(layer, chunk_)) +
           on_cpu(touched_bytes(layer), expert_ops(layer, chunk_));
  }
  // Missing experts stream over the link beside the work, the trunk's included, or the CPU computes
  // them.
  double prefill_gpu_layer(const LayerShape& layer, double resident) const {
    const double missing = 1.0 - resident;
    const double ops = expert_ops(layer, chunk_);
    const double experts = products(touched_bytes(layer), ops);
    const double trunk = kWideLayerSeconds + (layer.state_bytes > 0 ? kWideRecurrentSeconds : 0.0) +
                         wide_rows(layer) +
                         products(static_cast<double>(layer.trunk_bytes), trunk_ops(layer, chunk_));
    if (layer.n_experts == 0) return trunk;
    const double crossing = missing * touched_bytes(layer) / (kWaveShare * link_);
    const double by_cpu =
        missing > 0.0 ? handshake_ + on_cpu(missing * touched_bytes(layer), missing * ops) : 0.0;
    return std::min(std::max(trunk + experts_ + experts, crossing),
                    trunk + experts_ + resident * experts + by_cpu);
  }

 private:
  // A layer's experts.
  struct Expected {
    double seconds = 0.0;
    double n_read = 0.0;  // over the link
    void add(double chance, const Expected& other) {
      seconds += chance * other.seconds;
      n_read += chance * other.n_read;
    }
  };
  // Of n experts, by how many are missing: were they independent, that would be so for m of them
  // with probability C(n, m) missing^m (1 - missing)^(n - m).
  Expected expected(const LayerShape& layer, int n, double missing, double link_share) const {
    if (missing >= 1.0) return with_misses(layer, 0, n, link_share);
    Expected sum;
    double chance = std::pow(1.0 - missing, n);
    for (int m = 0; m <= n; ++m) {
      sum.add(chance, with_misses(layer, n - m, m, link_share));
      if (missing <= 0.0) break;
      chance *= missing / (1.0 - missing) * (n - m) / (m + 1);
    }
    return sum;
  }
  // Hits, what crosses the link, and the CPU's part go on beside each other; the slowest decides.
  // The link takes from the CPU what both read from the same memory.
  Expected with_misses(const LayerShape& layer, int n_hits, int n_misses, double link_share) const {
    const auto expert = static_cast<double>(layer.expert_bytes);
    const int n_link = link_reads(n_misses, static_cast<float>(link_share));
    const int n_cpu = n_misses - n_link;
    const double cpu =
        n_cpu > 0 ? handshake_ + (n_cpu + interference_ * n_link) * expert / cpu_ : 0.0;
    const double link =
        n_link > 0 ? kLinkBursts * kLinkBurstSeconds + n_link * expert / link_ : 0.0;
    const double hits = experts_ + n_hits * expert / expert_rate_;
    return {std::max({hits, link, cpu}), static_cast<double>(n_link)};
  }
  // One row of each sequence.
  double attend_seconds(const LayerShape& layer, int n_sequences) const {
    if (!layer.attends()) return 0.0;
    const double bytes = n_sequences * kv_bytes_at(layer, sequence_.n_ctx);
    return bytes / std::min(gpu_, kAttendRate) +
           (positions(layer, sequence_.n_ctx) >= kSplitPositions ? kSplitSeconds : 0.0);
  }
  static double positions(const LayerShape& layer, int depth) {
    return layer.window > 0 ? std::min(layer.window, depth) : depth;
  }
  // Of a chunk: weights are read and unpacked, and multiplied by all rows.
  double products(double bytes, double ops) const {
    return bytes / (kUnpackShare * gpu_) + ops / gpu_ops_;
  }
  // Of a chunk, what each of its rows takes besides products: attention, the mean one from the
  // chunk's middle, the delta rule, and norms and the like.
  double wide_rows(const LayerShape& layer) const {
    const double attend_ops = layer.attends() ? 4.0 * n_heads_ * layer.k_head_dim *
                                                    positions(layer, sequence_.n_ctx + chunk_ / 2)
                                              : 0.0;
    const double heads = std::max(n_heads_, 1);
    // Steps of up to kNarrowRows attend as decoding does, with all of the card for a row.
    const double rate = chunk_ > kNarrowRows
                            ? std::min(gpu_ * kAttendOpsPerByte, chunk_ * heads * kAttendRowOps)
                            : gpu_ * kAttendOpsPerByte;
    return chunk_ *
           (attend_ops / rate + static_cast<double>(layer.state_bytes) / (gpu_ * kWideStateShare) +
            kRowPasses * sizeof(float) * n_cols_ / gpu_);
  }
  double on_gpu(double bytes, double ops) const { return std::max(bytes / gpu_, ops / gpu_ops_); }
  double on_cpu(double bytes, double ops) const { return std::max(bytes / cpu_, ops / cpu_ops_); }
  // Of a decode step whose rows would take n_rows x alone bytes one by one. The rate of bytes has a
  // row's products in it, so several rows together are never slower than that.
  double rows_on_cpu(double bytes, double ops, double alone, int n_rows) const {
    return std::max(bytes / cpu_, std::min(ops / cpu_ops_, n_rows * alone / cpu_));
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
  double trunk_ops(const LayerShape& layer, int n_rows) const {
    return 2.0 * static_cast<double>(layer.trunk_elems) * n_rows;
  }
  double expert_ops(const LayerShape& layer, int n_rows) const {
    return 2.0 * used(layer) * static_cast<double>(layer.expert_elems) * n_rows;
  }
  // Of the experts a chunk meets at least once, were routing even.
  double touched_bytes(const LayerShape& layer) const {
    if (layer.n_experts == 0) return 0.0;
    const double share = static_cast<double>(used(layer)) / layer.n_experts;
    return layer.n_experts * (1.0 - std::pow(1.0 - share, chunk_)) *
           static_cast<double>(layer.expert_bytes);
  }

  int n_used_;
  int n_heads_, n_cols_;
  Workload sequence_;  // one, so long as the tokens before those that are predicted
  int chunk_;
  double gpu_, expert_rate_;                    // bytes/s
  double link_, cpu_, cpu_kv_, cpu_kv_prompt_;  // the same; the last may be 0: not counted
  double gpu_ops_, cpu_ops_;
  double handshake_;
  double experts_;  // of a layer's, besides their bytes
  double interference_;
};

}  // namespace

double step_seconds(const Hardware& hardware, bool uses_gpu) {
  const double device = uses_gpu ? hardware.launch_us + hardware.readback_us : 0.0;
  return (device + hardware.sampling_us) * 1e-6;
}

namespace {

// Seconds of a step, of the layers and of what stands around them.
struct Times {
  double decode = 0.0;
  double prefill = 0.0;
  double hit_rate = 0.0;
};

Times times_of(const ModelShape& model, const Hardware& hardware, const Workload& work,
               const Placement& place, const LocalityCurve& locality, const DecodeRows& rows) {
  const Clock clock(model, hardware, work);
  const int n_cpu_layers = model.n_layers() - place.n_gpu_layers;
  const bool uses_gpu = place.n_gpu_layers > 0;
  Times t{.decode = clock.output(model, rows.n_rows, uses_gpu) + step_seconds(hardware, uses_gpu),
          .prefill = clock.output(model, 1, uses_gpu)};
  double hits_sum = 0.0;
  int n_routed = 0;
  for (int i = 0; i < model.n_layers(); ++i) {
    const LayerShape& layer = model.layers[static_cast<size_t>(i)];
    const bool on_gpu = i >= n_cpu_layers;
    const int n_slots = on_gpu ? place.n_slots[static_cast<size_t>(i)] : 0;
    const double resident =
        layer.n_experts == 0 ? 1.0 : static_cast<double>(n_slots) / layer.n_experts;
    const Distinct experts =
        locality.distinct(resident, rows, {clock.used(layer), layer.n_experts});
    if (!on_gpu) {
      t.decode += clock.decode_cpu_layer(layer, rows, experts);
      t.prefill += clock.prefill_cpu_layer(layer);
      continue;
    }
    t.decode += clock.decode_gpu_layer(layer, rows, experts, place.link_share, resident,
                                       experts.misses * locality.copies(resident));
    t.prefill += clock.prefill_gpu_layer(layer, resident);
    if (layer.n_experts == 0) continue;
    hits_sum += locality.hits(resident);
    ++n_routed;
  }
  if (n_cpu_layers > 0 && uses_gpu) {  // the rows cross from the CPU to the GPU
    t.decode += clock.handshake();
    t.prefill += clock.handshake();
  }
  t.hit_rate = n_routed > 0 ? hits_sum / n_routed : 0.0;
  return t;
}

}  // namespace

double predict_rows(const ModelShape& model, const Hardware& hardware, const Workload& work,
                    const Placement& place, const LocalityCurve& locality, const DecodeRows& rows) {
  return rows.n_rows / times_of(model, hardware, work, place, locality, rows).decode;
}

Speed predict(const ModelShape& model, const Hardware& hardware, const Workload& work,
              const Placement& place, const LocalityCurve& locality) {
  const DecodeRows rows{work.decode_rows(), work.decode_rows()};
  const Times t = times_of(model, hardware, work, place, locality, rows);
  return {rows.n_rows / t.decode, work.prefill_chunk / t.prefill, t.hit_rate};
}

}  // namespace sluice::policy
