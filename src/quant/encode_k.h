// The K-quant encoders behind encode.h: one super-block of 256 values each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/blocks.h"

namespace sluice::quant {

void encode_block(const float* x, BlockQ4_K& out);
void encode_block(const float* x, BlockQ5_K& out);
void encode_block(const float* x, BlockQ6_K& out);

}  // namespace sluice::quant
