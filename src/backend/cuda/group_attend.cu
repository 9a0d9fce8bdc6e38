// Attention of prompts on sm_90: see group_attend.h; the kernel is in group_attend.cuh. Compiled
// for sm_90a alone (src/CMakeLists.txt), since code for its instructions runs on no other card.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/group_attend.h"

#include "backend/cuda/group_attend.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {

#if defined(SLUICE_GROUP_PRODUCTS)

namespace {

template <int dims>
void run(const WideAttend& p, const Launch& how) {
  p.of.kv_type == quant::Type::bf16
      ? run_group_attend<GroupShape<dims, true, GroupOptions{}>>(p, how)
      : run_group_attend<GroupShape<dims, false, GroupOptions{}>>(p, how);
}

}  // namespace

bool group_attend(const WideAttend& p, const Launch& how) {
  constexpr size_t kShared = sizeof(GroupShape<128, false, GroupOptions{}>::Shared);
  if (!how.has_group_products || p.of.head_dim > 128) return false;
  CHECK(kShared <= static_cast<size_t>(how.shared_bytes));
  wide_dims(p.of.head_dim) == 64 ? run<64>(p, how) : run<128>(p, how);
  return true;
}

#else

bool group_attend(const WideAttend&, const Launch&) { return false; }

#endif

}  // namespace sluice::backend::cuda
