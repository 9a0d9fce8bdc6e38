// Attention over a KV cache of any types, keys and values each of their own: attend.h has the
// common ones. Simple and not fast. Pointers are device memory; nothing here synchronises or
// allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend.h"
#include "backend/kv_page.h"

namespace sluice::backend::cuda {

constexpr int kMostHeadDim = 256;

struct AttendAny {
  Attend of;  // but for kv_type, eps, out_int8 and its scratch
  quant::Type k_type = quant::Type::f32;
  quant::Type v_type = quant::Type::f32;
  KvPage k_page = {};
  KvPage v_page = {};
  float q_eps = 0.0f;
  float k_eps = 0.0f;
  const int32_t* n_live = nullptr;  // rows from *n_live on keep nothing, and give zeros
  float* queries = nullptr;         // scratch: [n_rows, n_heads head_dim]
};
void attend_any(const AttendAny& p, const Launch& how);

}  // namespace sluice::backend::cuda
