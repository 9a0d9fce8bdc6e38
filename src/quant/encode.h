// Floats -> stored row, for the types that sluice writes. Minimises the squared error of the
// weights, unweighted; decode.h is the way back. Deterministic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "quant/type.h"

namespace sluice::quant {

// F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K.
bool can_encode(Type type);

// src.size() % block == 0; dst: row_bytes(type, src.size()) bytes, any alignment.
// Values beyond what the type can hold saturate, infinities too (F32 keeps them), so that every
// scale written is finite. NaN is the caller's to refuse: the block it stands in is meaningless.
void encode_row(Type type, std::span<const float> src, std::byte* dst);

}  // namespace sluice::quant
