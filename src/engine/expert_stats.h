// What an expert runtime did, layer by layer: where experts were found, how long that took, and
// what crossed the link.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backend/device_ops.h"
#include "policy/prefetch.h"

namespace sluice::engine {

// Sums over the steps so far; calls are pairs of expert and row.
struct LayerStats {
  int64_t n_hits = 0;    // in a slot
  int64_t n_staged = 0;  // copied ahead, or streamed through
  int64_t n_link = 0;    // read over the link by the device
  int64_t n_cpu = 0;     // computed by the CPU
  uint64_t link_bytes = 0;
  double seconds = 0.0;
  double wait_seconds = 0.0;

  int64_t n_calls() const { return n_hits + n_staged + n_link + n_cpu; }
};

struct ExpertStats {
  int64_t n_steps = 0;
  int64_t n_rows = 0;
  std::vector<LayerStats> layers;  // of the decode steps
  int64_t n_copies = 0;            // that the cache asked for, over the link
  uint64_t copied_bytes = 0;
  uint64_t streamed_bytes = 0;  // in wide steps
  int64_t n_failed_copies = 0;
  int64_t n_prefetched = 0;
  policy::PrefetchCounts prefetch;

  LayerStats total() const {
    LayerStats all;
    for (const LayerStats& l : layers) {
      all.n_hits += l.n_hits, all.n_staged += l.n_staged, all.n_link += l.n_link;
      all.n_cpu += l.n_cpu, all.link_bytes += l.link_bytes;
      all.seconds += l.seconds, all.wait_seconds += l.wait_seconds;
    }
    return all;
  }
};

// Adds up the logs of steps.
struct StatsSum {
  int64_t n_steps = 0;
  int64_t n_rows = 0;
  std::vector<LayerStats> layers;

  void add(size_t layer, const backend::LayerLog& log) {
    LayerStats& l = layers[layer];
    l.n_hits += log.n_hits, l.n_staged += log.n_staged, l.n_link += log.n_link;
    l.n_cpu += log.n_cpu, l.link_bytes += log.link_bytes;
    l.seconds += log.seconds, l.wait_seconds += log.wait_seconds;
  }
};

}  // namespace sluice::engine
