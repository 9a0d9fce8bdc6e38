// Times kernels as steps run them: captured in a graph, which is replayed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "backend/cuda/cuda_error.h"

namespace sluice::backend::cuda {

class GraphTimer {
 public:
  GraphTimer() {
    CHECK_CUDA(cudaStreamCreate(&stream_));
    CHECK_CUDA(cudaEventCreate(&begin_));
    CHECK_CUDA(cudaEventCreate(&end_));
  }
  cudaStream_t stream() const { return stream_; }

  // Microseconds of one replay of what `enqueue` captures: the median of 7 runs.
  double operator()(const std::function<void()>& enqueue, int n_replays = 20) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    enqueue();
    CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK_CUDA(cudaGraphLaunch(exec, stream_));
    std::vector<double> times;
    for (int run = 0; run < 7; ++run) {
      CHECK_CUDA(cudaEventRecord(begin_, stream_));
      for (int i = 0; i < n_replays; ++i) CHECK_CUDA(cudaGraphLaunch(exec, stream_));
      CHECK_CUDA(cudaEventRecord(end_, stream_));
      CHECK_CUDA(cudaStreamSynchronize(stream_));
      float ms = 0;
      CHECK_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      times.push_back(1e3 * ms / n_replays);
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    std::ranges::sort(times);
    return times[3];
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace sluice::backend::cuda
