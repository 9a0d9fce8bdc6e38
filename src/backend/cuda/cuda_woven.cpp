// See cuda_woven.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_woven.h"

#include <algorithm>

#include "backend/cuda/cuda_error.h"
#include "base/units.h"

namespace sluice::backend::cuda {

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
  CHECK_CUDA(cudaMemcpy(plain.data(), rows.data, rows.matrix_bytes(), cudaMemcpyDeviceToHost));
  for (int64_t r = 0; r < out.n_rows; r += quant::kStripeRows) {
    const uint64_t at = static_cast<uint64_t>(r) * rows.row_bytes();
    quant::weave_rows(rows.type, rows.n_cols, plain.data() + at, woven.data() + at);
  }
  Copy copy{rows.data, device_.allocate(MemoryKind::device, woven.size())};
  CHECK_CUDA(cudaMemcpy(copy.stripes.data(), woven.data(), woven.size(), cudaMemcpyHostToDevice));
  out.data = copy.stripes.data();
  copies_.push_back(std::move(copy));
  return out;
}

}  // namespace sluice::backend::cuda
