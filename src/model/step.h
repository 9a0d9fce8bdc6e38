// One step of a model: the rows to compute, the memory to compute them in, and the parties that do
// the work. The engine fills it in; the math only reads top to bottom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backend/ops.h"
#include "model/config.h"
#include "model/expert_runner.h"

namespace sluice::model {

// Activations of up to n_rows rows; the engine allocates them once, for the widest step.
struct Activations {
  backend::RowsView x;          // [n_rows, d_model]
  backend::RowsView qkv;        // [n_rows, the most columns that a layer projects x to]
  backend::RowsView attention;  // [n_rows, the most that its attention or DeltaNet gives]
  backend::ExpertInputView expert_input;
  backend::RoutingView routing;
  backend::RowsView logits;  // [rows computed at a time, n_vocab]
};

struct Step {
  backend::Ops& op;
  ExpertRunner& experts;
  backend::StepView rows;
  std::span<const backend::KvLayerView> kv;  // by layer
  Activations s;
  std::span<const backend::StateLayerView> state = {};  // by layer; read where it is recurrent
};

}  // namespace sluice::model
