// Writes a model of any shape with random weights: valid for every reader, and right for comparing
// engines and for measuring speed at the size of real models.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"
#include "model_file/quant_mix.h"

namespace sluice::model_file {

struct SynthOptions {
  model::Config config;
  QuantMix mix;
  int attention_interval = 4;      // of hybrids: every so many layers one attends
  std::vector<std::string> forms;  // tensors of a rarer form that the file shall have: ssm_in, ...
  float std = 0.02f;               // of every matrix
  uint64_t seed = 0;               // tensors are drawn from it and their own name
};

// The same options give the same bytes. A shape that makes no model is refused as the reader of
// such a file would refuse it; nothing is left behind.
void write_synthetic_model(const std::string& path, const SynthOptions& options, ThreadPool& pool,
                           const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace sluice::model_file
