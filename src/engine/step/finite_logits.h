// A number that is not finite anywhere in a token's path ends up in its logits, and is refused
// there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/error.h"

namespace sluice::engine {

[[noreturn]] inline void refuse_logits(const std::string& origin, int pos) {
  throw Error(Errc::bad_file,
              cat(origin, ": the logits at position ", pos,
                  " are not finite; the weights are damaged (see sluice inspect --check-tensors) "
                  "or overflow the KV type"));
}

inline void require_finite_logits(const std::string& origin, int pos,
                                  std::span<const float> logits) {
  if (!std::ranges::all_of(logits, [](float l) { return std::isfinite(l); })) {
    refuse_logits(origin, pos);
  }
}

}  // namespace sluice::engine
