// Rows of a KV page on the CPU: floats into a page and back, for every type a cache can have. The
// numbers are those of quant::encode_row and decode_row; kv_page.h says where they stand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "quant/type.h"

namespace sluice::backend::cpu {

// scales: of that row; not used by float types.
void store_kv_row(quant::Type type, std::span<const float> values, std::byte* row,
                  std::byte* scales);
void load_kv_row(quant::Type type, const std::byte* row, const std::byte* scales,
                 std::span<float> values);

}  // namespace sluice::backend::cpu
