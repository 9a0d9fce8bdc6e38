// Which tokens may come next: one bit for each, the lowest bit of the first word being token 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace sluice::sampler {

// A view; whoever made the mask keeps the words.
struct TokenMask {
  std::span<const uint64_t> words;  // at least n_vocab bits; those past n_vocab do not count

  bool allows(TokenId id) const {
    const auto bit = static_cast<uint32_t>(id);
    return ((words[bit / 64] >> (bit % 64)) & 1) != 0;
  }
};

}  // namespace sluice::sampler
