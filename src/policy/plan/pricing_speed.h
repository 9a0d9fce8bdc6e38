// How fast a placement will be: a cost model of bytes, rates and waits. It proposes; what decides
// between close candidates is a trial on the machine itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "policy/plan/hardware.h"
#include "policy/plan/pricing.h"
#include "policy/trace/routing_profile.h"

namespace sluice::policy {

// Of a decode step: a row of each of several sequences, or several of one that are verified
// together. Neither is a prompt.
struct DecodeRows {
  int n_rows = 1;
  int n_sequences = 1;
};

// Which share of a layer's routed calls finds its expert in VRAM, by the share of its experts that
// are there: straight lines between the points, from (0, 0) to (1, 1).
class LocalityCurve {
 public:
  struct Point {
    double resident;
    double hits;
  };

  // The best online policy on recorded Qwen3-30B-A3B routing (8 of 128 experts): 43, 63, 75, 83 and
  // 92 % at 6.25, 12.5, 18.8, 25 and 37.5 %. A profile of the user's own texts replaces it.
  static LocalityCurve typical();

  // What the profile's own text would have hit, had the experts it used most been in VRAM from the
  // start: the mean of its layers. A cache that follows the text does a little better. It has
  // steps.
  static LocalityCurve of(const RoutingProfile& profile);

  // Points strictly rising in `resident`, never falling in `hits`, all inside (0, 1).
  explicit LocalityCurve(std::vector<Point> points);

  double hits(double resident) const;

  // How many experts a layer reads for several rows at once, on average: in VRAM and elsewhere.
  // Of a profile, each expert is met as often as its texts met it. Else rows choose evenly, and
  // sequences have other texts: each finds its own in its share of the slots, and in those of the
  // others what is there by chance. One row: n_used, by hits().
  struct Distinct {
    double hits;
    double misses;
    double sum() const { return hits + misses; }
  };
  struct Choice {
    int n_used;
    int n_experts;
  };
  Distinct distinct(double resident, const DecodeRows& rows, Choice choice) const;

 private:
  std::vector<Point> points_;
  bool is_popularity_ =
      false;  // the curve sums up how often experts are chosen, the most used first
};

// The trunk's four kernels of a layer in a captured graph, besides their bytes: 1.7 to 4 us each on
// an H200 (bench/results/gpu_kernels.md). The experts' two are Machine::experts_us.
constexpr double kGpuLayerSeconds = 10e-6;
// As many barriers of a thread pool.
constexpr double kCpuLayerSeconds = 20e-6;
// Operations/s that prefill reaches for each byte/s of memory rate: llama.cpp was measured at 64 T
// with 4.3 TB/s (H200) and reported at 52 T with 1.8 TB/s (RTX 5090).
constexpr double kGpuOpsPerByte = 25.0;
// Operations/s of one CPU core in prefill, where nobody has measured: 0.12 T on two cores were
// measured with llama.cpp.
constexpr double kCpuCoreOps = 0.06e12;

// Rows of the steps that are recorded.
inline constexpr std::array kWidths = {1, 2, 4, 8, 16};

struct Speed {
  double decode = 0.0;    // tokens/s of all sequences, Workload::forecast_depth() into their texts
  double prefill = 0.0;   // tokens/s of a full chunk, as deep
  double hit_rate = 0.0;  // of the routed calls of all layers that run on the GPU
};

// Of a decode step, besides its layers and its output: submitting it, reading its results, choosing
// the token.
double step_seconds(const Hardware& hardware, bool uses_gpu);

// Tokens/s of decode steps of such rows; predict() has it for a row of each of the workload's
// sequences.
double predict_rows(const ModelShape& model, const Hardware& hardware, const Workload& work,
                    const Placement& place, const LocalityCurve& locality, const DecodeRows& rows);

Speed predict(const ModelShape& model, const Hardware& hardware, const Workload& work,
              const Placement& place, const LocalityCurve& locality);

}  // namespace sluice::policy
