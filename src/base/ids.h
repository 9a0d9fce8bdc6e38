// Strong index types, so that a layer cannot be passed where an expert is meant.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace sluice {

template <typename Tag>
struct Id {
  int32_t value = 0;
  constexpr Id() = default;
  constexpr explicit Id(int32_t v) : value(v) {}
  friend constexpr auto operator<=>(Id, Id) = default;
};

using LayerId = Id<struct LayerTag>;
using ExpertId = Id<struct ExpertTag>;
using SequenceId = Id<struct SequenceTag>;

// Token ids cross every interface and most files as plain numbers, so they stay one.
using TokenId = int32_t;

}  // namespace sluice
