// See cuda_woven.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_woven.h"

#include <algorithm>

#include "backend/cuda/cuda_error.h"
#include "base/units.h"

namespace sluice::backend::cuda {
namespace {

// Done when it returns, whatever other streams do. (cudaMemcpy of memory that is not pinned returns
// before its last part has arrived, and no other stream waits for it.)
void copy_now(void* to, const void* from, size_t n_bytes) {
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaError_t status = cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
  static_cast<void>(cudaStreamDestroy(stream));
  check_cuda(status, "cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream)");
}

}  // namespace

WeightView CudaWoven::stripes_of(const WeightView& rows) {
  WeightView out = rows;
  out.n_rows =
      static_cast<int64_t>(round_up(static_cast<uint64_t>(rows.n_rows), quant::kStripeRows));
  out.layout = quant::Layout::stripes;
  const auto made = std::ranges::find(copies_, rows.data, &Copy::rows);
  if (made != copies_.end()) {
    out.data = made->stripes.data();
    return out;
  }
  std::vector<std::byte> plain(out.matrix_bytes()), woven(out.matrix_bytes());
  copy_now(plain.data(), rows.data, rows.matrix_bytes());
  for (int64_t r = 0; r < out.n_rows; r += quant::kStripeRows) {
    const uint64_t at = static_cast<uint64_t>(r) * rows.row_bytes();
    quant::weave_rows(rows.type, rows.n_cols, plain.data() + at, woven.data() + at);
  }
  Copy copy{rows.data, device_.allocate(MemoryKind::device, woven.size())};
  copy_now(copy.stripes.data(), woven.data(), woven.size());
  out.data = copy.stripes.data();
  copies_.push_back(std::move(copy));
  return out;
}

}  // namespace sluice::backend::cuda
