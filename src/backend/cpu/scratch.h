// Memory of the CPU operations that grows to the largest step it has seen and then stays: after a
// first step of full width nothing is allocated any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::backend::cpu {

template <typename T>
class Scratch {
 public:
  // At least n values, whose content is left over from earlier use.
  T* get(int64_t n) {
    if (static_cast<int64_t>(values_.size()) < n) values_.resize(static_cast<size_t>(n));
    return values_.data();
  }

 private:
  std::vector<T> values_;
};

}  // namespace sluice::backend::cpu
