// The memory of one step's activations, allocated once for the widest step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/ops.h"
#include "model/model.h"
#include "model/step.h"
#include "policy/plan/pricing.h"

namespace sluice::engine {

// Logits are wide, and rarely wanted for more than a few rows: they are computed so many at a time.
using policy::kMaxLogitRows;

// Whose memory the rows' input x is: its own, or somebody else's, who sets it in every view.
enum class InputRows { own, given };

class ActivationsBuffer {
 public:
  ActivationsBuffer(const backend::Allocate& memory, const model::Model& model, int max_rows,
                    InputRows input = InputRows::own);

  int max_rows() const { return max_rows_; }

  // For a step of n_rows rows.
  model::Activations view(int64_t n_rows) const;

 private:
  template <typename T>
  T* allocate(const backend::Allocate& memory, int64_t n_rows, int64_t n_cols);

  int max_rows_;
  std::vector<backend::Buffer> buffers_;
  model::Activations widest_;
};

}  // namespace sluice::engine
