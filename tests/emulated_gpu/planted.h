// Launchers of planted.cu, on the default stream. Pointers are the card's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

namespace sluice::emulated_gpu {

void write_numbers(int* to, int n, int n_threads);
// [32] each: `value` by way of `between`.
void write_and_read(int* between, int* to, int value, bool waits_first);
void copy_numbers(const int* from, int* to, bool waits);  // [128]
void hand_on(int* to, bool meets);                        // [4]: 2, 3, 4, 1
void shuffle(int* to);                                    // [32]: 1, 0, 3, 2, ..
void meet(unsigned* n_here, int* to, int n_blocks);       // [2 n_blocks]

}  // namespace sluice::emulated_gpu
