// Logits to try stages on: smooth, steep, full of ties, with tokens that cannot be drawn, and at
// the edges of float's range.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "sampler/lanes.h"

namespace sluice::sampler::test {

inline double random_unit(uint64_t seed, uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}

// Normally distributed.
inline double random_normal(uint64_t seed, uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random_unit(seed, 2 * index)));
  return radius * std::cos(6.283185307179586 * random_unit(seed, 2 * index + 1));
}

enum class Shape { smooth, steep, ties, equal, holes, huge, tiny, ascending };
inline constexpr Shape kShapes[] = {Shape::smooth, Shape::steep, Shape::ties, Shape::equal,
                                    Shape::holes,  Shape::huge,  Shape::tiny, Shape::ascending};
inline constexpr size_t kSizes[] = {1, 2, 3, 31, 64, 65, 1000, 5003};

// One finite number at least.
inline std::vector<float> make_logits(Shape shape, size_t n, uint64_t seed) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    const double x = random_normal(seed, i);
    const bool hole = i > 0 && random_bits(seed + 1, i) % 3 == 0;
    switch (shape) {
      case Shape::smooth:
        out[i] = static_cast<float>(x);
        break;
      case Shape::steep:
        out[i] = static_cast<float>(8.0 * x);
        break;
      case Shape::ties:
        out[i] = static_cast<float>(std::round(x));
        break;
      case Shape::equal:
        out[i] = -3.25f;
        break;
      case Shape::holes:
        out[i] = hole ? -kInf : static_cast<float>(3.0 * x);
        break;
      case Shape::huge:
        out[i] = x > 1.0 ? kMost : x < -1.0 ? -kMost : static_cast<float>(1e30 * x);
        break;
      case Shape::tiny:
        out[i] = static_cast<float>(1e-40 * x);
        break;
      case Shape::ascending:
        out[i] = static_cast<float>(i) * 0.01f;
        break;
    }
  }
  return out;
}

// For failures.
inline std::string describe(Shape shape, size_t n) {
  constexpr const char* kNames[] = {"smooth", "steep", "ties", "equal",
                                    "holes",  "huge",  "tiny", "ascending"};
  return std::string(kNames[static_cast<size_t>(shape)]) + ", " + std::to_string(n) + " logits";
}

}  // namespace sluice::sampler::test
