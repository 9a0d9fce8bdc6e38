// Where experts were found, how long that took, and what crossed the link: sums over the life of a
// session. A call is a pair of an expert and a token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

struct LayerStats {
  int64_t n_hits = 0;    // calls that found their expert on the device,
  int64_t n_staged = 0;  // copied there ahead of its layer,
  int64_t n_link = 0;    // read over the link by the device,
  int64_t n_cpu = 0;     // or computed it on the CPU
  uint64_t link_bytes = 0;
  double seconds = 0.0;        // from the lookup to the sum
  double wait_seconds = 0.0;   // of it, for the CPU's rows
  double stall_seconds = 0.0;  // of it, for bytes on the link
  double cpu_seconds = 0.0;    // that the CPU's workers computed beside it

  int64_t n_calls() const { return n_hits + n_staged + n_link + n_cpu; }
};

struct ExpertStats {
  int64_t n_steps = 0;  // of decode; prompts are counted below only
  int64_t n_tokens = 0;
  std::vector<LayerStats> layers;
  int64_t n_copies = 0;  // that the cache asked for
  uint64_t copied_bytes = 0;
  int64_t n_landed = 0;  // that it wanted, of experts the device had just read over the link itself
  uint64_t streamed_bytes = 0;  // of prompts, through the two buffers
  int64_t n_failed_copies = 0;
  int64_t n_prefetched = 0;   // copies ahead of their layer, and their bytes:
  uint64_t useful_bytes = 0;  // in time, and used
  uint64_t late_bytes = 0;
  uint64_t wasted_bytes = 0;

  LayerStats total() const {
    LayerStats all;
    for (const LayerStats& l : layers) {
      all.n_hits += l.n_hits, all.n_staged += l.n_staged, all.n_link += l.n_link;
      all.n_cpu += l.n_cpu, all.link_bytes += l.link_bytes;
      all.seconds += l.seconds, all.wait_seconds += l.wait_seconds;
      all.stall_seconds += l.stall_seconds, all.cpu_seconds += l.cpu_seconds;
    }
    return all;
  }
};

}  // namespace sluice
