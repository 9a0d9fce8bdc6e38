// The router of a step of many rows: which experts the rows chose, with what weight, and norm(x) as
// int8, with the bits of route() for every row. Pointers are device memory; nothing here
// synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/route.h"

namespace sluice::backend::cuda {

struct WideRoute {
  Route of;                   // any number of rows; without what is about lists, and n_live
  float* weighted = nullptr;  // scratch: [n_rows, wide_route_cols()]
  float* scales = nullptr;    // scratch: [n_rows]
};
void wide_route(const WideRoute& p, const Launch& how);

// Of a row times the norm's weights, with zeros behind it: whole segments for all warps.
constexpr int wide_route_cols(int d_model) { return (d_model + 2047) / 2048 * 2048; }

}  // namespace sluice::backend::cuda
