// Experts that come ahead of their layer. While a layer's experts are computed, the router of a
// later one is applied to what there is of its input; what it asks for and the device lacks is
// copied into one of a few staging slots, with a word that names step, layer and expert behind it.
// The lookup takes what is there in time; the rest costs nothing but its bytes.
//
// The device tells of every layer that it has routed; a thread of the host reads that and makes the
// copies. It only uses a link that is idle, only begins what should arrive in time, and with what
// lookups read the link carries hardly more than if every miss were copied on demand. Where lookups
// do read over it, a copy must be over before the next layer can ask for any: there only the
// shortest time that a layer can take is counted on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "backend/device_ops.h"
#include "engine/device/expert_copies.h"
#include "engine/device/step_thread.h"
#include "engine/step/routing_log.h"
#include "policy/cache/prefetch.h"
#include "policy/cache/waste_allowance.h"

namespace sluice::engine {

struct StagingOptions {
  bool enabled = false;
  double link_gbps = 0.0;
  double delay_us = 0.0;       // of a copy, before its first byte
  double layer_seconds = 0.0;  // how long a layer of a step lasts, about
  double hits_seconds = 0.0;   // and where it misses nothing, so at least
  double max_waste = 0.015;    // beyond the bytes that were missed, of these
  double copy_cost = 0.4;      // as PrefetchOptions: what the CPU's workers lose to a copy
};

class ExpertStaging {
 public:
  // `device_model` is the model as the device's operations see it. All outlive this.
  struct Parts {
    HostExperts& host;
    const policy::ExpertCache& cache;
    backend::Stream& copies;
    const ExpertCopies& demand;
    const RoutingLog& log;
  };
  ExpertStaging(backend::Device& device, const model::Model& device_model, DeviceBlock memory,
                const Parts& parts, int max_rows, const StagingOptions& options);

  std::span<const backend::StagedSlot> slots() const { return views_; }
  bool is_on() const { return n_ahead_ > 0; }

  // Enqueues or records, after a layer's experts are found: word of that to the thread, with what
  // the later layer's router makes of x, the input of this one's experts before any norm. `step`:
  // its number, in the device's memory.
  void foresee(backend::DeviceOps& ops, LayerId layer, const uint32_t* step,
               backend::ConstRowsView x);

  // Around a step's work on the device, of layers from `first` on. In between the thread makes the
  // copies, and nobody else may use the copy stream.
  void begin_step(uint32_t step, int64_t n_rows, LayerId first);
  void end_step();

  // After a fault of the copy stream: what was under way will not come.
  void forget();

  // An expert that arrived in the step just done; null: it did not.
  const std::byte* find(policy::ExpertKey key) const;

  const policy::PrefetchCounts& counts() const { return planner_.counts(); }
  int64_t n_copies() const { return n_copies_; }
  // Of the experts that a later layer's router was asked for, those it then routed.
  double recall() const {
    return static_cast<double>(all_.n_right) / static_cast<double>(std::max<int64_t>(all_.n, 1));
  }

 private:
  struct Prediction {  // of one layer, by rank
    std::vector<int32_t> experts;
    std::vector<bool> was_missing;
  };
  // How often a missing expert that stood at a rank was routed in the end.
  struct Trust {
    int64_t n_right = 0, n = 0;
    double probability() const;
  };

  void work();
  void layer_routed(LayerId layer);
  uint64_t settled_bytes() const;
  bool is_asking() const;
  void note_arrivals();
  void learn(LayerId layer, std::span<const RoutedExpert> routed);
  void finish_layer();
  bool has_room() const { return !has_reads_ || options_.hits_seconds >= copy_seconds_; }
  void take_prediction(LayerId from, LayerId layer, int n_rows);
  size_t prediction_bytes() const;
  backend::RoutingView prediction(LayerId layer) const;
  uint64_t room_on_link(uint64_t read_bytes) const;
  void begin_copies(uint64_t max_bytes);

  backend::Device& device_;
  const model::Model& model_;
  HostExperts& host_;
  const policy::ExpertCache& cache_;
  backend::Stream& copies_;
  const ExpertCopies& demand_;
  const RoutingLog& log_;
  StagingOptions options_;
  int max_rows_;               // wider steps foresee nothing
  int n_ahead_ = 0;            // layers; 0: off
  double copy_seconds_ = 0.0;  // of the largest expert
  uint64_t settled_ = 0;       // settled_bytes() when last seen
  bool has_reads_ = false;     // lookups use the link too
  policy::WasteAllowance waste_;
  DeviceBlock memory_;
  policy::PrefetchPlanner planner_;
  std::vector<std::byte*> slots_;
  std::span<uint64_t> words_;       // by slot: what is there, in mapped memory
  std::vector<uint64_t> keys_;      // of the newest copy into each slot
  std::vector<bool> is_under_way_;  // by slot
  std::vector<backend::StagedSlot> views_;
  std::vector<backend::ExpertLayout> layouts_;  // by layer
  std::vector<Prediction> predicted_;           // by layer
  std::vector<Trust> trust_;                    // by rank, of those missing
  Trust all_;
  backend::Buffer mapped_;              // what follows, and the words
  std::span<backend::LayerNews> news_;  // by layer
  uint32_t* is_wanted_ = nullptr;       // whether the next layer should ask
  std::byte* predictions_ = nullptr;    // by layer: what the device writes
  std::vector<policy::PrefetchCandidate> candidates_;
  LayerId last_layer_;
  std::vector<RoutedExpert> last_routed_;
  uint32_t step_ = 0;
  int64_t n_copies_ = 0;

  LayerId first_layer_;  // of the step under way
  bool has_failed_ = false;
  std::optional<StepThread> thread_;  // last; only where it is on. Has all of it during a step
};

}  // namespace sluice::engine
