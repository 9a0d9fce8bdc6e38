// Words that host and kernels pass each other in mapped memory, and the wait for the host's rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/host_answers.h"
#include "backend/cuda/warp.cuh"
#include "backend/device_ops.h"
#include "backend/mailbox.h"

namespace sluice::backend::cuda {

__device__ __forceinline__ uint64_t acquired(const uint64_t* word) {
  uint64_t value = 0;
#if __CUDA_ARCH__ >= 700
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
#endif
  return value;
}

__device__ __forceinline__ void release(uint64_t* word, uint64_t value) {
#if __CUDA_ARCH__ >= 700
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#endif
}

__device__ __forceinline__ void pause(unsigned ns) {
#if __CUDA_ARCH__ >= 700
  __nanosleep(ns);
#endif
}

// The same among kernels of one card.
__device__ __forceinline__ uint64_t acquired_here(const uint64_t* word) {
  uint64_t value = 0;
#if __CUDA_ARCH__ >= 700
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
#endif
  return value;
}

__device__ __forceinline__ void release_here(uint64_t* word, uint64_t value) {
#if __CUDA_ARCH__ >= 700
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#endif
}

// Nanoseconds on the card's clock.
__device__ __forceinline__ uint64_t card_time() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The first fault of a step says most: later layers wait for nobody.
__device__ __forceinline__ void write_fault(uint64_t* fault, uint64_t number) {
  if (acquired(fault) >> 32 != number >> 32) release(fault, number);
}

__device__ __forceinline__ uint64_t request_of(const uint32_t* step, uint64_t number) {
  return static_cast<uint64_t>(__ldcg(step)) << 32 | number;
}

// Nanoseconds of a layer's experts, in shared memory of the block that writes them down.
struct HostTimes {
  uint64_t began;
  int64_t waited, answering;
};

// By the thread that writes them, when the kernels before have ended; the others stay 0 (set before
// a barrier) where nobody awaits an answer.
__device__ __forceinline__ void begin_times(const HostAnswers& host, HostTimes& times) {
  if (host.log) times.began = __ldcg(host.began);
}

// By one thread: until the host's word says so, and then to all others.
__device__ __forceinline__ void poll_host(const HostAnswers& host, uint64_t number) {
  uint64_t answered = acquired(host.answered);
  while (answered != number && answered != kAborted) {
    pause(100);
    answered = acquired(host.answered);
  }
  if (answered == kAborted) write_fault(host.fault, number);
  release_here(&host.relay->answered, number);
}

// By a whole warp: until the host has answered, or will not any more. The first to come polls: any
// other might not be running yet. (When each of down's 256 blocks polled, their reads crowded the
// link.)
__device__ __forceinline__ void await_answer(const HostAnswers& host, HostTimes& times) {
  if (host.step == nullptr) return;
  const int lane = lane_index();
  if (lane == 0) {
    const uint64_t number = request_of(host.step, host.number), before = card_time();
    if (atomicMax(&host.relay->polled, static_cast<unsigned long long>(number)) < number) {
      poll_host(host, number);
    } else {
      while (acquired_here(&host.relay->answered) < number) pause(100);
    }
    times.waited = static_cast<int64_t>(card_time() - before);
  }
  __syncwarp();
  if (blockIdx.x == 0 && lane == kWarp - 1) times.answering = __ldcv(host.answer_ns);
}

// By one thread of one block, at the end of the layer's experts.
__device__ __forceinline__ void write_times(const HostAnswers& host, const HostTimes& times) {
  if (host.log == nullptr) return;
  host.log->wait_ns = times.waited;
  host.log->cpu_ns = times.answering;
  host.log->ns = static_cast<int64_t>(card_time() - times.began);
}

}  // namespace sluice::backend::cuda
