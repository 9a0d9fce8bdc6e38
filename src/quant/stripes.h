// Eight rows of a quantised weight woven into a stripe: the same 4-byte word of all eight side by
// side, so that a kernel with a row in each lane loads a word of eight rows at once instead of
// picking it from eight places, and reads memory in one stream. Bytes only change their place: a
// stripe is as large as its rows, and starts where the first of them would.
//
// Chunk by chunk of 256 columns (the last may be shorter): first the field of each block that is no
// whole word, if its type has one (a 2-byte scale, or MXFP4's 1-byte exponent), then all words:
//
//   odd[block][row], word[block][i][row]
//
// Words stand in the order in which they are needed, which is the file's but for Q6_K, whose upper
// bits lie far from the lower ones: CPUs fetch ahead what is read in order, and only that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/type.h"

namespace sluice::quant {

constexpr int kStripeRows = 8;

// How the rows of a weight lie in memory: one behind the other as in a file, or woven by eight.
enum class Layout { rows, stripes };

// A block of so many bytes, in a stripe: its odd field stands first (32-blocks) or last
// (super-blocks).
template <size_t block_bytes>
struct Woven {
  static constexpr int kElems = block_bytes < 64 ? 32 : 256;  // all blocks of 32 are smaller
  static constexpr size_t kOddBytes = block_bytes % 4;        // 0, 1 or 2
  static constexpr size_t kWordBytes = block_bytes - kOddBytes;
  static constexpr size_t kOddAt = kElems == 32 ? 0 : kWordBytes;
  static constexpr size_t kWordsAt = kElems == 32 ? kOddBytes : 0;
};

// Q6_K by 16 bytes: for each 64 columns two pieces of ql and one of qh, then the scales.
constexpr int kWovenQ6K[13] = {0, 2, 8, 1, 3, 9, 4, 6, 10, 5, 7, 11, 12};

// n_blocks blocks of eight rows that stand `stride` bytes apart, as one chunk.
template <size_t block_bytes>
void weave_chunk(int n_blocks, const std::byte* rows, size_t stride, std::byte* out);

// Eight rows of n_cols weights, one behind the other. Quantised types only.
void weave_rows(Type type, int64_t n_cols, const std::byte* rows, std::byte* out);

// Row `row` of a stripe as it was.
void unweave_row(Type type, int64_t n_cols, const std::byte* stripe, int row, std::byte* out);

}  // namespace sluice::quant
