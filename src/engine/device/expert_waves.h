// The experts of a prompt that are not in the device's memory. They come over the link in waves,
// through two halves of a buffer: while the experts of one wave are computed, those of the next one
// cross. How many waves a layer has is fixed before the step, so that the device's work can be
// enqueued whole, and the host waits for nothing in between.
//
// A thread of the host makes the copies, ahead of the device's work and across layers: of a layer's
// experts first those that will be used almost for sure, and the rest when the device has told what
// was routed. A wave begins when its half is free again, which the device tells; where fewer
// experts were routed than are missing, the last waves of a layer are empty.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/device_ops.h"
#include "engine/device/expert_slots.h"
#include "engine/device/host_experts.h"
#include "engine/device/step_thread.h"
#include "engine/step/routing_log.h"
#include "policy/cache/prompt_guess.h"

namespace sluice::engine {

class ExpertWaves {
 public:
  // All outlive it.
  struct Parts {
    backend::Stream& main;
    backend::Stream& copies;
    const ExpertSlots& slots;
    HostExperts& host;
    const policy::ExpertCache& cache;
    RoutingLog& log;
  };
  // `buffer`: in the device's memory, two halves in one piece; `mapped`: wave_bytes().
  ExpertWaves(backend::Device& device, const model::Model& model, const Parts& parts,
              std::span<std::byte> buffer, backend::Buffer mapped);

  // Whether so many missing experts of a layer come over the link; else the CPU computes them.
  using Prefers = std::function<bool(LayerId layer, int n_missing)>;

  // Before a step's work is enqueued, of layers from `first` on; and after the work is done. In
  // between nobody else may use the copy stream.
  void begin_step(uint32_t step, LayerId first, const Prefers& prefers);
  void end_step();

  // For the step under way: whether a layer's experts are all resident or come in waves.
  bool has(LayerId layer) const { return layers_[index(layer)].is_here; }
  int n_waves(LayerId layer) const { return layers_[index(layer)].n_waves; }
  // Whether the device tells when it has sorted the layer's pairs, and what: every layer if any
  // layer of the step has waves, otherwise every eighth, which shows how far a step is. (To tell
  // takes a kernel that nothing runs beside.)
  bool tells(LayerId layer) const { return has_waves_ || layer.value % kToldLayers == 0; }
  int32_t* n_pairs(LayerId layer) const { return n_pairs_ + index(layer) * n_experts_; }
  uint64_t* told(LayerId layer) const { return told_ + index(layer); }
  bool is_routed(LayerId layer) const;  // whether it has told, in the step under way
  bool is_under_way(LayerId layer) const { return layer.value >= first_layer_.value; }

  struct Wave {
    uint64_t number = 0;
    const uint64_t* arrived = nullptr;        // is the number when its experts are there
    uint64_t* freed = nullptr;                // to be set to it when they are computed
    const std::byte* const* table = nullptr;  // [n_experts], in memory that both sides see
  };
  Wave wave(LayerId layer, int i) const;
  const uint64_t* ended() const {
    return ended_;
  }  // no more waves will come, but for Stream::await

  // What the thread could not do in the last step; empty: nothing went wrong.
  const std::string& fault() const { return fault_; }
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  static constexpr int kToldLayers = 8;

  struct Half {
    std::byte* data = nullptr;
    const std::byte** table = nullptr;
    uint64_t* arrived = nullptr;
    uint64_t* freed = nullptr;
  };
  struct Missing {
    ExpertId expert;
    int rank = 0;  // by heat, among all of the layer
  };
  struct LayerWaves {
    bool is_here = false;
    int n_waves = 0;
    int first_wave = 0;            // of the step's
    std::vector<Missing> missing;  // hottest first
  };

  static size_t index(LayerId layer) { return static_cast<size_t>(layer.value); }
  size_t in_half(LayerId layer) const;
  uint64_t number(int wave) const {
    return uint64_t{step_} << 32 | static_cast<uint32_t>(wave + 1);
  }
  Half& half(int wave) { return halves_[wave % 2]; }
  void find_missing(LayerId layer);
  void count(LayerId layer) const;
  void work();
  bool copy_layer(LayerId layer);
  bool copy_expert(LayerId layer, ExpertId expert);
  bool open_wave();
  void close_wave();
  bool await(const uint64_t* word, uint64_t value);
  void end_waits();

  backend::Device& device_;
  Parts p_;
  int n_layers_;
  size_t n_experts_;
  uint64_t half_bytes_;
  backend::Buffer mapped_;  // what follows, and the halves' tables and words
  uint64_t* ended_ = nullptr;
  uint64_t* begun_ = nullptr;
  uint64_t* told_ = nullptr;    // by layer
  int32_t* n_pairs_ = nullptr;  // by layer and expert
  Half halves_[2];
  std::vector<LayerWaves> layers_;
  std::vector<ExpertId> by_heat_;  // experts of a layer
  policy::PromptGuess guess_;
  bool in_step_ = false;
  bool has_waves_ = false;
  uint32_t step_ = 0;
  LayerId first_layer_;
  int wave_ = 0;  // of the step, that is being filled
  size_t n_in_wave_ = 0;
  bool is_open_ = false;
  std::string fault_;
  uint64_t copied_bytes_ = 0;
  StepThread thread_;  // last: it uses all of the above during a step
};

}  // namespace sluice::engine
