// What the operations of the CPU share.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"

#include "backend/cpu/host_memory.h"
#include "backend/cpu/rms_norm.h"

namespace sluice::backend {
namespace cpu {

Buffer CpuOps::allocate(uint64_t n_bytes) { return allocate_host(n_bytes); }

ConstRowsView CpuOps::normalised(ConstRowsView x, const NormView& norm) {
  float* out = normed_.get(x.n_rows * x.n_cols);
  pool_.parallel_for(x.n_rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      rms_norm({x.row(r), static_cast<size_t>(x.n_cols)}, norm, out + r * x.n_cols);
    }
  });
  return {out, x.n_rows, x.n_cols};
}

}  // namespace cpu

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const cpu::Kernels& kernels) {
  return std::make_unique<cpu::CpuOps>(pool, kernels);
}

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool) {
  return make_cpu_ops(pool, cpu::best_kernels());
}

}  // namespace sluice::backend
