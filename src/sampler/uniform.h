// Random numbers for the draw, the same for a seed on every machine: the standard fixes what
// std::mt19937 yields, but not what its distributions make of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace sluice::sampler {

class Uniform {
 public:
  explicit Uniform(uint32_t seed) : generator_(seed) {}

  // In [0, 1): 53 bits, the upper 27 and 26 of two draws.
  double operator()() {
    const auto high = static_cast<uint64_t>(generator_()) >> 5;
    const auto low = static_cast<uint64_t>(generator_()) >> 6;
    return static_cast<double>((high << 26) | low) * 0x1p-53;
  }
  void seed(uint32_t seed) { generator_.seed(seed); }

 private:
  std::mt19937 generator_;
};

}  // namespace sluice::sampler
