// GGUF -> GGUF with the matrices in another type. Works on any file, whatever its architecture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/thread_pool.h"
#include "gguf/model_file.h"
#include "model_file/quant_mix.h"

namespace sluice::model_file {

struct RequantizeResult {
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
  int n_converted = 0;  // tensors whose type changed
  int n_kept = 0;
  int n_from_quantized = 0;  // of the converted: those that were quantised before and lose twice
};

// Throws Errc::bad_request for a type that sluice cannot write, and Errc::bad_file for a tensor
// that cannot be read as numbers or holds one that is not finite.
RequantizeResult requantize(const gguf::ModelFile& in, const std::string& out_path,
                            const QuantMix& mix, ThreadPool& pool,
                            const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace sluice::model_file
