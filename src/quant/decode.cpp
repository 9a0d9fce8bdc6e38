// See decode.h. The bits are taken apart in unpack.cpp; here stand the formulas of the six forms.
// SPDX-License-Identifier: Apache-2.0
#include "quant/decode.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/float8.h"
#include "quant/unpack.h"

namespace sluice::quant {
namespace {

template <Type type>
void decode_floats(const std::byte* src, std::span<float> dst) {
  const int64_t n = std::ssize(dst);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) store(load_8_floats<type>(src, i), dst.data() + i);
  for (; i < n; ++i) dst[static_cast<size_t>(i)] = load_float<type>(src, i);
}

// x = scale*w
void scale_weights(const int8_t* w, int n, float scale, float* x) {
  for (int i = 0; i < n; ++i) x[i] = scale * static_cast<float>(w[i]);
}

// x = scale*w + offset; the product is exact in every type with an offset (11 + 6 + 5 bits)
void scale_and_shift_weights(const int8_t* w, int n, float scale, float offset, float* x) {
  for (int i = 0; i < n; ++i) x[i] = scale * static_cast<float>(w[i]) + offset;
}

void decode_blocks(const Chunk& chunk, bool has_min, float* x) {
  for (int b = 0; b < chunk.n_blocks; ++b, x += kBlock) {
    const int8_t* w = chunk.w + kBlock * b;
    if (has_min) {
      scale_and_shift_weights(w, kBlock, chunk.block_scale[b], chunk.block_min[b], x);
    } else {
      scale_weights(w, kBlock, chunk.block_scale[b], x);
    }
  }
}

// d*s and dmin*m are exact: 11 bits times at most 8.
void decode_super_block(const Chunk& chunk, bool has_min, int group, float* x) {
  for (int g = 0; g < kSuperBlock / group; ++g, x += group) {
    const int8_t* w = chunk.w + group * g;
    const float scale = chunk.d * static_cast<float>(chunk.s[g]);
    if (has_min) {
      const float min = chunk.dmin * static_cast<float>(chunk.m[g]);
      scale_and_shift_weights(w, group, scale, -min, x);
    } else {
      scale_weights(w, group, scale, x);
    }
  }
}

void decode_chunk(Form form, const Chunk& chunk, float* x) {
  switch (form) {
    case Form::block:
      return decode_blocks(chunk, false, x);
    case Form::block_min:
      return decode_blocks(chunk, true, x);
    case Form::super_32:
      return decode_super_block(chunk, false, 32, x);
    case Form::super_32_min:
      return decode_super_block(chunk, true, 32, x);
    case Form::super_16:
      return decode_super_block(chunk, false, 16, x);
    case Form::super_16_min:
      return decode_super_block(chunk, true, 16, x);
  }
}

void decode_quantised(Type type, const std::byte* src, std::span<float> dst) {
  const Form form = form_of(type);
  const int64_t n = std::ssize(dst);
  CHECK(n % (is_block_form(form) ? kBlock : kSuperBlock) == 0);
  Chunk chunk;
  for (int64_t i = 0; i < n; i += kSuperBlock) {
    const int64_t n_blocks = std::min<int64_t>(n - i, kSuperBlock) / kBlock;
    src = unpack_chunk(type, src, static_cast<int>(n_blocks), chunk);
    decode_chunk(form, chunk, dst.data() + i);
  }
}

}  // namespace

void decode_row(Type type, const std::byte* src, std::span<float> dst) {
  switch (type) {
    case Type::f32:
      return decode_floats<Type::f32>(src, dst);
    case Type::f16:
      return decode_floats<Type::f16>(src, dst);
    case Type::bf16:
      return decode_floats<Type::bf16>(src, dst);
    default:
      return decode_quantised(type, src, dst);
  }
}

}  // namespace sluice::quant
