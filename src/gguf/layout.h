// The fixed numbers of the GGUF container, shared by the parser and the writer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace sluice::gguf {

// The file is little endian; so are the machines we run on, and numbers are copied as they stand.
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kMinVersion = 2;  // version 2 has the layout of version 3
constexpr uint32_t kVersion = 3;
constexpr uint64_t kHeaderBytes = 24;  // magic, version, n_tensors, n_kv

constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;
// Below 8 an F32 or I64 tensor could start anywhere; 2 MiB is a huge page, and files use 32 to
// 4096.
constexpr uint64_t kMinAlignment = 8;
constexpr uint64_t kMaxAlignment = 2 * kMiB;

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxStringBytes = kGiB;
constexpr uint64_t kMaxArrayElems = uint64_t{1} << 30;

}  // namespace sluice::gguf
