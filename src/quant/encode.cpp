// See encode.h. The float types and the 32-blocks stand here, the K-quants in encode_k.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "quant/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"
#include "quant/encode_k.h"
#include "quant/round.h"
#include "quant/scale_search.h"

namespace sluice::quant {
namespace {

template <typename Narrow>
void encode_halves(std::span<const float> src, float most, Narrow narrow, std::byte* dst) {
  for (size_t i = 0; i < src.size(); ++i) {
    const uint16_t bits = narrow(std::clamp(src[i], -most, most));
    std::memcpy(dst + 2 * i, &bits, 2);
  }
}

// d = max|x| / 127, q = round(x/d). Where f16 is coarse (d subnormal), d is rounded up rather than
// the largest value cut off, so that no error exceeds d/2.
void encode_block(const float* x, BlockQ8_0& out) {
  float most = 0;
  for (int i = 0; i < kBlock; ++i) most = std::max(most, std::abs(x[i]));
  uint16_t bits = f32_to_f16(std::min(most / 127.0f, kMaxF16));
  if (most > 127.5f * f16_to_f32(bits) && f16_to_f32(bits) < kMaxF16) ++bits;
  const float d = f16_to_f32(bits);
  const float inverse = d > 0 ? 1.0f / d : 0.0f;
  for (int i = 0; i < kBlock; ++i) {
    const float v = std::clamp(x[i] * inverse, -127.0f, 127.0f);
    out.qs[i] = static_cast<int8_t>(round_half_even(v));
  }
  out.d.set_bits(bits);
}

void encode_block(const float* x, BlockQ4_0& out) {
  float limited[kBlock];
  for (int i = 0; i < kBlock; ++i) limited[i] = std::clamp(x[i], -8 * kMaxF16, 8 * kMaxF16);
  const float scale = fit_symmetric(limited, kBlock, 7);
  const uint16_t bits = narrow_scale(scale);
  float q[kBlock];
  quantize_symmetric(limited, kBlock, f16_to_f32(bits), 7, q);
  out.d.set_bits(bits);
  for (int i = 0; i < 16; ++i) {
    const int low = static_cast<int>(q[i]) + 8;
    const int high = static_cast<int>(q[i + 16]) + 8;
    out.qs[i] = static_cast<uint8_t>(low | high << 4);
  }
}

template <typename Block>
void encode_blocks(std::span<const float> src, size_t block_elems, std::byte* dst) {
  CHECK(src.size() % block_elems == 0);
  auto* blocks = reinterpret_cast<Block*>(dst);
  for (size_t b = 0; b < src.size() / block_elems; ++b) {
    encode_block(src.data() + b * block_elems, blocks[b]);
  }
}

}  // namespace

bool can_encode(Type type) {
  switch (type) {
    case Type::f32:
    case Type::f16:
    case Type::bf16:
    case Type::q8_0:
    case Type::q4_0:
    case Type::q4_k:
    case Type::q5_k:
    case Type::q6_k:
      return true;
    default:
      return false;
  }
}

void encode_row(Type type, std::span<const float> src, std::byte* dst) {
  switch (type) {
    case Type::f32:
      std::ranges::copy(std::as_bytes(src), dst);
      return;
    case Type::f16:
      return encode_halves(src, kMaxF16, f32_to_f16, dst);
    case Type::bf16:
      return encode_halves(src, kMaxBf16, f32_to_bf16, dst);
    case Type::q8_0:
      return encode_blocks<BlockQ8_0>(src, kBlock, dst);
    case Type::q4_0:
      return encode_blocks<BlockQ4_0>(src, kBlock, dst);
    case Type::q4_k:
      return encode_blocks<BlockQ4_K>(src, kSuperBlock, dst);
    case Type::q5_k:
      return encode_blocks<BlockQ5_K>(src, kSuperBlock, dst);
    case Type::q6_k:
      return encode_blocks<BlockQ6_K>(src, kSuperBlock, dst);
    default:
      check_failed("encode_row: can_encode(type)", __FILE__, __LINE__);
  }
}

}  // namespace sluice::quant
