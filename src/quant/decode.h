// Stored row -> floats. This scalar decode defines the types: every kernel is tested against it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "quant/type.h"

namespace sluice::quant {

// src: the first dst.size() elements of a row, any alignment; dst.size() % block == 0.
void decode_row(Type type, const std::byte* src, std::span<float> dst);

}  // namespace sluice::quant
