// The memory that kernels may touch: what was allocated or registered. Everything else is a fault.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::emulated_gpu {

enum class MemoryOf : uint8_t { device, host, module };

void add_region(const void* first, size_t n_bytes, MemoryOf what);
// False where none begins there.
bool remove_region(const void* first);
bool is_known(uint64_t address, size_t n_bytes);
// In words, by the block in front of it.
std::string place_of(uint64_t address);
bool is_device_memory(const void* address);
size_t region_bytes(const void* first);
uint64_t device_bytes_used();

}  // namespace sluice::emulated_gpu
