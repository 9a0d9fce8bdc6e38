// See architecture.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

#include <array>

namespace sluice::model {

std::span<const Architecture* const> architectures() {
  static const std::array kAll = {&qwen3moe(), &qwen2moe(), &olmoe(), &llama()};
  return kAll;
}

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* architecture : architectures()) {
    if (architecture->name() == name) return architecture;
  }
  return nullptr;
}

}  // namespace sluice::model
