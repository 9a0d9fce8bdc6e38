// See stripes.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/stripes.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"

namespace sluice::quant {
namespace {

constexpr size_t kRows = kStripeRows;

using FourWords = uint32_t __attribute__((vector_size(16)));

FourWords load(const std::byte* p) {
  FourWords x;
  std::memcpy(&x, p, sizeof(x));
  return x;
}

// 16 bytes of each row: word j of all rows goes to out[j].
void weave_four_words(const std::byte* rows, size_t stride, std::byte* out) {
  for (size_t r = 0; r < kRows; r += 4) {
    const std::byte* const p = rows + r * stride;
    const FourWords a = load(p), b = load(p + stride), c = load(p + 2 * stride),
                    d = load(p + 3 * stride);
    const FourWords ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const FourWords ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const FourWords cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const FourWords cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const FourWords woven[4] = {__builtin_shufflevector(ab01, cd01, 0, 1, 4, 5),
                                __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7),
                                __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5),
                                __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7)};
    for (size_t j = 0; j < 4; ++j) std::memcpy(out + 4 * (kRows * j + r), &woven[j], 16);
  }
}

// Where in a block's words those stand that a stripe has at byte `at` (of each row).
template <size_t block_bytes>
constexpr size_t source_of(size_t at) {
  if constexpr (block_bytes != sizeof(BlockQ6_K)) return at;
  return static_cast<size_t>(kWovenQ6K[at / 16]) * 16 + at % 16;
}

template <size_t block_bytes>
void weave_words(const std::byte* rows, size_t stride, std::byte* out) {
  constexpr size_t kBytes = Woven<block_bytes>::kWordBytes;
  size_t at = 0;
  for (; at + 16 <= kBytes; at += 16) {
    weave_four_words(rows + source_of<block_bytes>(at), stride, out + kRows * at);
  }
  for (; at < kBytes; at += 4) {
    for (size_t r = 0; r < kRows; ++r) {
      std::memcpy(out + kRows * at + 4 * r, rows + r * stride + at, 4);
    }
  }
}

}  // namespace

template <size_t block_bytes>
void weave_chunk(int n_blocks, const std::byte* rows, size_t stride, std::byte* out) {
  using B = Woven<block_bytes>;
  const auto n = static_cast<size_t>(n_blocks);
  if constexpr (B::kOddBytes > 0) {
    for (size_t b = 0; b < n; ++b) {
      for (size_t r = 0; r < kRows; ++r) {
        std::memcpy(out, rows + r * stride + b * block_bytes + B::kOddAt, B::kOddBytes);
        out += B::kOddBytes;
      }
    }
  }
  for (size_t b = 0; b < n; ++b) {
    weave_words<block_bytes>(rows + b * block_bytes + B::kWordsAt, stride, out);
    out += kRows * B::kWordBytes;
  }
}

namespace {

// The reverse for one row.
template <size_t block_bytes>
void unweave_chunk(int n_blocks, const std::byte* chunk, size_t row, std::byte* out) {
  using B = Woven<block_bytes>;
  const auto n = static_cast<size_t>(n_blocks);
  const std::byte* const words = chunk + kRows * n * B::kOddBytes;
  for (size_t b = 0; b < n; ++b, out += block_bytes) {
    std::memcpy(out + B::kOddAt, chunk + (b * kRows + row) * B::kOddBytes, B::kOddBytes);
    for (size_t at = 0; at < B::kWordBytes; at += 4) {
      std::memcpy(out + B::kWordsAt + source_of<block_bytes>(at),
                  words + kRows * (b * B::kWordBytes + at) + 4 * row, 4);
    }
  }
}

using Weave = void (*)(int n_blocks, const std::byte* rows, size_t stride, std::byte* out);
using Unweave = void (*)(int n_blocks, const std::byte* chunk, size_t row, std::byte* out);

struct BlockOps {
  Weave weave = nullptr;
  Unweave unweave = nullptr;
};

template <size_t... sizes>
BlockOps ops_among(size_t block_bytes) {
  BlockOps ops;
  ((block_bytes == sizes ? void(ops = {weave_chunk<sizes>, unweave_chunk<sizes>}) : void()), ...);
  return ops;
}

BlockOps ops_of(Type type) {
  const BlockOps ops =
      ops_among<sizeof(BlockQ4_0), sizeof(BlockQ4_1), sizeof(BlockQ5_0), sizeof(BlockQ5_1),
                sizeof(BlockQ8_0), sizeof(BlockMXFP4), sizeof(BlockQ2_K), sizeof(BlockQ3_K),
                sizeof(BlockQ4_K), sizeof(BlockQ5_K), sizeof(BlockQ6_K), sizeof(BlockIQ4_XS)>(
          type_info(type).block_bytes);
  CHECK(ops.weave);  // a quantised type
  return ops;
}

// Calls use(bytes of a row before the chunk, blocks in it) for every chunk of a row.
template <typename Use>
void for_chunks(Type type, int64_t n_cols, const Use& use) {
  const TypeInfo& info = type_info(type);
  for (int64_t first = 0; first < n_cols; first += kSuperBlock) {
    const int64_t n = std::min<int64_t>(kSuperBlock, n_cols - first);
    use(row_bytes(type, first), static_cast<int>(n / info.block_elems));
  }
}

}  // namespace

void weave_rows(Type type, int64_t n_cols, const std::byte* rows, std::byte* out) {
  const Weave weave = ops_of(type).weave;
  const size_t stride = row_bytes(type, n_cols);
  for_chunks(type, n_cols, [&](size_t before, int n_blocks) {
    weave(n_blocks, rows + before, stride, out + kRows * before);
  });
}

void unweave_row(Type type, int64_t n_cols, const std::byte* stripe, int row, std::byte* out) {
  const Unweave unweave = ops_of(type).unweave;
  for_chunks(type, n_cols, [&](size_t before, int n_blocks) {
    unweave(n_blocks, stripe + kRows * before, static_cast<size_t>(row), out + before);
  });
}

}  // namespace sluice::quant
