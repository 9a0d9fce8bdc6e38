// One expert for one row of zeros, in a recording: found on the device, or asked of the host, by
// turns another one of another layer, so that it comes from memory. What a handshake between device
// and host takes is measured with it (handshake.h, bench/handshakes.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backend/device_ops.h"
#include "engine/device/miss_worker.h"
#include "engine/step/activations.h"

namespace sluice::engine {

class OneExpert {
 public:
  // All outlive it. Nobody else may use the threads meanwhile.
  OneExpert(const model::Model& model, backend::Device& device, ThreadPool& threads);

  // The next layer's next expert.
  void advance();
  // From a file that is mapped, a first look at a page takes longer than its bytes.
  void touch_pages() const;

  // Seconds until the host has waited for it.
  double on_device();
  // The same of the host's answer, whose worker is woken for it. Throws Errc::device where it did
  // not come.
  double by_host();
  // Many of them, while the worker looks out for requests, as within a step.
  void begin_asking() { worker_.begin_step(); }
  double ask();
  void end_asking();

  uint64_t n_bytes() const { return layers_[at_].layout.n_bytes; }  // of the expert
  // Of the last one, as the device wrote it down.
  const backend::LayerLog& log() const { return *log_.counts; }

 private:
  struct Layer {
    backend::ExpertsView experts;
    LayerId id;
    backend::ExpertLayout layout;
    std::unique_ptr<backend::Recording> recording = {};
  };
  static std::vector<Layer> layers_of(const model::Model& model);
  uint64_t lay_out(std::byte* memory);
  void clear(const model::Activations& rows);
  std::unique_ptr<backend::Recording> record(const Layer& layer);
  double replay(const std::byte* slot);

  std::vector<Layer> layers_;
  size_t at_ = 0;       // the layer
  int32_t expert_ = 0;  // of it
  backend::Mailbox mailbox_;
  // In `mapped_`:
  const std::byte** table_ = nullptr;
  backend::LayerLogView log_;
  backend::RoutingView routing_;
  int32_t* n_live_ = nullptr;
  uint32_t* step_ = nullptr;
  float* link_share_ = nullptr;
  backend::Buffer mapped_;
  ActivationsBuffer own_;
  backend::Buffer slot_;
  uint64_t n_scratch_;
  backend::Buffer scratch_;
  std::unique_ptr<backend::Stream> stream_;
  std::unique_ptr<backend::DeviceOps> ops_;
  MissWorker worker_;
};

}  // namespace sluice::engine
