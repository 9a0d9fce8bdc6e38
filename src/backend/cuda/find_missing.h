// Experts of a listed step that the device does not hold: who brings them, and what is written down
// of it. Pointers are device memory unless it says mapped; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"
#include "backend/cuda/host_answers.h"
#include "backend/device_ops.h"
#include "backend/mailbox.h"

namespace sluice::backend::cuda {

// Looks for the groups of the list that have no address: among what was staged, then in the host's
// memory (which the device reads itself, as many as *link_share says); what is left is asked of the
// host, through the mailbox. Writes the layer's log. (gate_up can do all of this by itself for a
// single row: Ranking::missing.)
constexpr int kMostStaged = 16;
struct FindMissing {
  ExpertList list;
  bool has_shared = false;           // its last group
  const int32_t* experts = nullptr;  // [n_rows, n_used]
  const float* weights = nullptr;    // [n_rows, n_used]
  int n_rows = 0;
  int n_used = 0;
  const int32_t* n_live = nullptr;
  const uint32_t* step = nullptr;
  uint64_t number = 0;   // request_number() of step 0
  bool goes_on = false;  // the log already has earlier rows of the layer
  StagedSlot staged[kMostStaged] = {};
  int n_staged = 0;
  const uint8_t* host = nullptr;  // mapped: the layer's slots; null: the device cannot read them
  int64_t stride = 0;             // from one to the next
  int64_t up_at = 0;
  int64_t down_at = 0;
  uint64_t expert_bytes = 0;
  const float* link_share = nullptr;
  ExpertInputView a;
  MailboxView mailbox;  // mapped
  AnswerRelay* relay = nullptr;
  LandingView landing;        // for copies of what is read over the link; `landed` is mapped
  bool lands = false;         // whether copies are left: of a single row
  LayerLogView log;           // mapped
  uint64_t* began = nullptr;  // the time
};
void find_missing(const FindMissing& p, const Launch& how);

// Tells the host that a layer is routed, and whether there is a prediction of a later one.
struct TellRouted {
  const uint32_t* step = nullptr;
  uint64_t number = 0;  // request_number() of step 0
  bool has_prediction = false;
  const uint32_t* wanted = nullptr;  // mapped
  LayerNews* news = nullptr;         // mapped
};
void tell_routed(const TellRouted& p, const Launch& how);

// Copies the host's rows to `out` once they are there: [slots, n_cols], those of groups without an
// address. For kernels that do not wait themselves.
struct TakeAnswers {
  ExpertList list;
  HostAnswers host;
  int n_cols = 0;
  float* out = nullptr;
};
void take_answers(const TakeAnswers& p, const Launch& how);

}  // namespace sluice::backend::cuda
