// See validate.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/validate.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"

namespace sluice::quant {
namespace {

// Infinity and NaN have all exponent bits set.
bool is_finite_f16(uint16_t bits) { return (bits & 0x7c00u) != 0x7c00u; }

template <typename Bits, Bits exponent>
bool all_finite(const std::byte* data, int64_t n) {
  bool bad = false;
  for (int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    bad |= (bits & exponent) == exponent;
  }
  return !bad;
}

// Stretches first, because the loop over one has no early exit and runs at the speed of memory.
template <typename Bits, Bits exponent>
int64_t first_bad_float(const std::byte* data, int64_t n) {
  constexpr int64_t kStretch = 4096;
  for (int64_t start = 0; start < n; start += kStretch) {
    const int64_t end = std::min(n, start + kStretch);
    const auto at = [&](int64_t i) { return data + i * static_cast<int64_t>(sizeof(Bits)); };
    if (all_finite<Bits, exponent>(at(start), end - start)) continue;
    int64_t i = start;
    while (all_finite<Bits, exponent>(at(i), 1)) ++i;
    return i;
  }
  return -1;
}

bool is_good(const BlockMXFP4& block) { return block.e != 255; }

template <typename Block>
bool is_good(const Block& block) {
  if constexpr (requires { block.m; }) {
    return is_finite_f16(block.d.bits()) && is_finite_f16(block.m.bits());
  } else if constexpr (requires { block.dmin; }) {
    return is_finite_f16(block.d.bits()) && is_finite_f16(block.dmin.bits());
  } else {
    return is_finite_f16(block.d.bits());
  }
}

template <typename Block>
int64_t first_bad(const std::byte* data, int64_t n_blocks) {
  const auto* blocks = reinterpret_cast<const Block*>(data);
  for (int64_t i = 0; i < n_blocks; ++i) {
    if (!is_good(blocks[i])) return i;
  }
  return -1;
}

}  // namespace

int64_t first_bad_block(Type type, const std::byte* data, int64_t n_blocks) {
  switch (type) {
    case Type::f32:
      return first_bad_float<uint32_t, 0x7f800000u>(data, n_blocks);
    case Type::f16:
      return first_bad_float<uint16_t, 0x7c00u>(data, n_blocks);
    case Type::bf16:
      return first_bad_float<uint16_t, 0x7f80u>(data, n_blocks);
    case Type::q4_0:
      return first_bad<BlockQ4_0>(data, n_blocks);
    case Type::q4_1:
      return first_bad<BlockQ4_1>(data, n_blocks);
    case Type::q5_0:
      return first_bad<BlockQ5_0>(data, n_blocks);
    case Type::q5_1:
      return first_bad<BlockQ5_1>(data, n_blocks);
    case Type::q8_0:
      return first_bad<BlockQ8_0>(data, n_blocks);
    case Type::q2_k:
      return first_bad<BlockQ2_K>(data, n_blocks);
    case Type::q3_k:
      return first_bad<BlockQ3_K>(data, n_blocks);
    case Type::q4_k:
      return first_bad<BlockQ4_K>(data, n_blocks);
    case Type::q5_k:
      return first_bad<BlockQ5_K>(data, n_blocks);
    case Type::q6_k:
      return first_bad<BlockQ6_K>(data, n_blocks);
    case Type::iq4_nl:
      return first_bad<BlockIQ4_NL>(data, n_blocks);
    case Type::iq4_xs:
      return first_bad<BlockIQ4_XS>(data, n_blocks);
    case Type::mxfp4:
      return first_bad<BlockMXFP4>(data, n_blocks);
  }
  check_failed("first_bad_block: a supported type", __FILE__, __LINE__);
}

}  // namespace sluice::quant
