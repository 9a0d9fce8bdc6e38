// A model's quantised matrices, copied into memory of our own and woven as the CPU's kernels like
// them best (quant/stripes.h): in huge pages, each matrix one stream. Routed experts, quantised or
// not, stand there as they do on a device: each in one piece (backend::ExpertLayout), so that one
// copy brings an expert and one address finds it. docs/decisions/0009 says what that gains and
// costs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "backend/buffer.h"
#include "base/thread_pool.h"
#include "model/model.h"

namespace sluice::engine {

// Whether its rows are quantised, and come in whole stripes.
bool can_be_woven(const backend::WeightView& w);

// Owns the copies; the model's views point to them, so it must live as long as these are used.
class WovenWeights {
 public:
  using Progress = std::function<void(uint64_t bytes_done, uint64_t bytes_total)>;

  // How much memory the copies of a model take.
  static uint64_t bytes_for(model::Model& model);

  // Whether so much, of what is free, leaves room for KV caches and for other programs.
  static bool leave_room(uint64_t n_bytes, uint64_t free_bytes);

  // Copies them and makes the model use the copies. Throws Errc::out_of_memory, and Errc::bad_file
  // where the file cannot be read.
  WovenWeights(model::Model& model, ThreadPool& pool, const Progress& progress);

 private:
  backend::Buffer memory_;
};

}  // namespace sluice::engine
