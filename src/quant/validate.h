// Finds the blocks that would put infinities or NaN into a model: a damaged file is better refused
// than computed with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/type.h"

namespace sluice::quant {

// The index of the first of n_blocks blocks with a non-finite scale field, a non-finite value
// (float types, whose block is one element) or an MXFP4 exponent of 255; -1 if there is none.
int64_t first_bad_block(Type type, const std::byte* data, int64_t n_blocks);

}  // namespace sluice::quant
