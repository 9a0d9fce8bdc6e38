// Blocks of random but valid content for synthetic models, benchmarks and tests: mean zero, a given
// standard deviation, scales that differ from block to block so that a kernel that drops one is
// caught. A pure function of (seed, block index), so any part of a tensor can be made alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/type.h"

namespace sluice::quant {

// Fills dst with blocks first_block .. first_block + n_blocks - 1 of the stream `seed`. std > 0.
// Below about 1e-5 the f16 scales of the K-quants become coarse, and std is then only roughly met.
void random_row_blocks(Type type, uint64_t seed, uint64_t first_block, int64_t n_blocks, float std,
                       std::byte* dst);

}  // namespace sluice::quant
