// Kernels with a fault each, and the same without it: what emulator_test.cpp shows that the
// emulated card finds, or makes visible in results.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/planted.h"

namespace sluice::emulated_gpu {
namespace {

__global__ void write_kernel(int* to, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = i;
}

// The second of two kernels reads what the first writes: before its wait, or behind it.
__global__ void first_kernel(int* to, int value) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  to[threadIdx.x] = value;
}
__global__ void second_kernel(const int* from, int* to, bool waits_first) {
  int early = 0;
  if (!waits_first) early = __ldcg(from + threadIdx.x);
  asm volatile("griddepcontrol.wait;" ::: "memory");
  to[threadIdx.x] = waits_first ? __ldcg(from + threadIdx.x) : early;
}

// A copy to shared memory that is awaited, or not.
__global__ void copy_kernel(const int* from, int* to, bool waits) {
  __shared__ alignas(16) int room[128];
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(room + 4 * threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from + 4 * threadIdx.x)
               : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (waits) asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncwarp();
  for (int i = 0; i < 4; ++i) to[4 * threadIdx.x + i] = room[4 * threadIdx.x + i];
}

// Each warp hands a number to the next one, behind a barrier or not.
__global__ void hand_on_kernel(int* to, bool meets) {
  __shared__ int numbers[4];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0) numbers[(warp + 3) % 4] = warp + 1;
  if (meets) __syncthreads();
  if (threadIdx.x % 32 == 0) to[warp] = numbers[warp];
}

// Neighbours swap their numbers.
__global__ void shuffle_kernel(int* to) {
  to[threadIdx.x] = __shfl_xor_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
}

// Blocks wait for each other by a word in memory, lanes go apart and meet again.
__global__ void meet_kernel(unsigned* n_here, int* to) {
  const int block = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) {
    atomicAdd(n_here, 1u);
    while (*static_cast<volatile unsigned*>(n_here) < gridDim.x) __nanosleep(100);
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < static_cast<int>(threadIdx.x % 7); ++i) sum += i % 2 ? i : 10 * i;
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x % 32 == 0) to[block * 2 + static_cast<int>(threadIdx.x) / 32] = sum;
}

template <typename Kernel, typename... Args>
void launch_early(Kernel kernel, int n_threads, cudaStream_t stream, Args... args) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(static_cast<unsigned>(n_threads));
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace

void write_numbers(int* to, int n, int n_threads) { write_kernel<<<1, n_threads>>>(to, n); }
void write_and_read(int* between, int* to, int value, bool waits_first) {
  launch_early(first_kernel, 32, nullptr, between, value);
  launch_early(second_kernel, 32, nullptr, static_cast<const int*>(between), to, waits_first);
}
void copy_numbers(const int* from, int* to, bool waits) { copy_kernel<<<1, 32>>>(from, to, waits); }
void hand_on(int* to, bool meets) { hand_on_kernel<<<1, 128>>>(to, meets); }
void shuffle(int* to) { shuffle_kernel<<<1, 32>>>(to); }
void meet(unsigned* n_here, int* to, int n_blocks) { meet_kernel<<<n_blocks, 64>>>(n_here, to); }

}  // namespace sluice::emulated_gpu
