// The router's scores of a single row, and of several, without the choice (route.h decides when).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/route.h"

namespace sluice::backend::cuda {

void score_row(const Route& p, const Launch& how);
void score_rows(const Route& p, const Launch& how);

}  // namespace sluice::backend::cuda
