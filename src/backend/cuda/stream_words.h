// Small writes and copies in a stream's order. Pointers are device or mapped memory; nothing here
// synchronises or allocates.
//
// They are kernels, not stream memory operations or copies: their values travel as parameters,
// which a graph keeps, so no memory has to be held until they are done; they look at the stream's
// fault word, so that nothing is told after a fault; and they need nothing of the driver's
// interface.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::backend::cuda {

// Where *fault is 0: *word = value, seen by whoever acquires it on either side, with all that the
// stream wrote before.
void set_word(uint64_t* word, uint64_t value, const uint32_t* fault, cudaStream_t stream);

// Where *fault is 0: the bytes, at any address.
void write_bytes(std::byte* to, std::span<const std::byte> value, const uint32_t* fault,
                 cudaStream_t stream);

// What follows waits until *word is value, or *ended or *fault is not 0.
void await_word(const uint64_t* word, uint64_t value, const uint64_t* ended, const uint32_t* fault,
                cudaStream_t stream);

// Of at most 1 MiB, between addresses of 16 bytes' alignment.
bool is_small_copy(const std::byte* to, const std::byte* from, uint64_t n_bytes);

// Such a copy by a kernel. A copy engine works off its queue: a step's block that it copies waits
// behind the experts that another stream copies.
void copy_bytes(std::byte* to, const std::byte* from, uint64_t n_bytes, cudaStream_t stream);

// Whether this build has code for the current device; what CUDA says if not.
cudaError_t load_kernels();

}  // namespace sluice::backend::cuda
