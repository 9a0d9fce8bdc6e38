// One chunk of a quantised row as plain integers and scales: what decode.h turns into floats and
// what dot.h multiplies. This is the only place that reads the bits of a quantised block.
// A chunk is 256 elements, or fewer (a multiple of 32) at the end of a row of 32-blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/blocks.h"
#include "quant/type.h"

namespace sluice::quant {

// How a type makes a value x of its integer weight w. Block types have one float scale D (and
// minimum M) per 32; super-block types have d (and dmin) per 256 and small integers s (and m) per
// 32 or per 16.
enum class Form {
  block,         // x = D*w
  block_min,     // x = D*w + M
  super_32,      // x = d*s*w
  super_32_min,  // x = d*s*w - dmin*m
  super_16,      // x = d*s*w
  super_16_min,  // x = d*s*w - dmin*m
};

// Only quantised types.
Form form_of(Type type);

constexpr bool is_block_form(Form form) { return form == Form::block || form == Form::block_min; }

struct Chunk {
  alignas(32) int8_t w[kSuperBlock];
  int n_blocks;  // of 32 elements; 1..8

  float block_scale[8];  // D, block forms
  float block_min[8];    // M, block_min

  float d, dmin;  // super-block forms
  int32_t s[16];  // 8 or 16 of them, as the form says
  int32_t m[16];
};

// Unpacks n_blocks blocks of 32 (8 for a super-block type) and returns the byte behind them.
const std::byte* unpack_chunk(Type type, const std::byte* src, int n_blocks, Chunk& chunk);

}  // namespace sluice::quant
