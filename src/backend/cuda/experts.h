// The experts of a decode step on the device: which of them rows chose (route.h fills the list),
// and the two kernels that compute them. Bit-equal with quant/ for any number of rows. Pointers are
// device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/host_answers.h"
#include "backend/cuda/int8_rows.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

struct Launch;
struct FindMissing;

constexpr int kMaxRows = 16;
constexpr int kMaxUsed = 16;  // experts of a row

// An expert and the rows that chose it. Its hidden and output rows stand at slots: row * n_used +
// rank, and n_rows * n_used + row for the shared expert.
struct alignas(16) ExpertGroup {
  const uint8_t* gate;  // stripes; null: another place computes it (its rows come in `outside`)
  const uint8_t* up;
  const uint8_t* down;
  int32_t n_pairs;
  int32_t landing;  // where experts are looked up for a single row: the place for a copy, or -1
  int16_t row[kMaxRows];
  int16_t slot[kMaxRows];
};

// The groups of a step, the shared expert's last. Device memory; room for n_rows * n_used + 1.
struct ExpertList {
  int32_t* n_groups = nullptr;
  ExpertGroup* groups = nullptr;
};

// Of the routed experts, and of the shared one, which has the same types.
struct ExpertShape {
  quant::Type gate_up_type = quant::Type::q4_k;
  quant::Type down_type = quant::Type::q4_k;
  int d_model = 0;
  int d_ff = 0;
  int shared_d_ff = 0;  // 0: no shared expert
  int n_used = 0;
};

enum class RouterScore { softmax, sigmoid };

// gate_up ranks the experts by itself, so that no block of the router has to wait for all others
// (docs/decisions/0011), and writes the list, experts and weights. At most 256 experts. `forced`
// and `missing` are for a single row.
struct Ranking {
  const float* scores = nullptr;  // [n_rows, n_experts + 1]; null: the list says who was chosen
  int n_experts = 0;
  RouterScore score = RouterScore::softmax;
  bool renormalize = false;
  const uint8_t* const* table = nullptr;  // as in Route
  int64_t up_at = 0;
  int64_t down_at = 0;
  int32_t* experts = nullptr;  // [n_rows, n_used]
  float* weights = nullptr;    // [n_rows, n_used]
  // Of the shared expert, where the layer has one: gate, up and down; and its weight, by the score
  // behind all others where it has a gate.
  const uint8_t* shared[3] = {};
  bool has_shared_gate = false;
  float* shared_weights = nullptr;  // [n_rows], or null
  const int32_t* n_live = nullptr;  // as in Route
  // Of a rank, who is taken instead of the one that has it, where not negative; null: nobody is.
  const int32_t* forced = nullptr;  // [n_used], written before the layer's kernels
  // Of a single row: sums where project_add has left these instead of scores (AddedScores). Then
  // gate_up normalises and quantises the row itself, into `a` too. [n_experts + 1]; null: it has
  // not.
  uint64_t* sums = nullptr;
  const float* x = nullptr;
  const float* norm = nullptr;
  float eps = 0.0f;
  // Looks for those that the table lacks, by itself; in the host's memory, read at the launch.
  // Null: it lacks none.
  const FindMissing* missing = nullptr;
};
constexpr int kMostRanked = 256;

// Places for copies of what a single row's kernels read over the link (ExpertGroup::landing).
struct Landing {
  uint8_t* data = nullptr;  // null: none is left
  int64_t place_bytes = 0;
};

// h = int8(SwiGLU(gate a, up a)), for all pairs of the list. a: [n_rows, d_model]; h: [slots, the
// larger d_ff].
struct GateUp {
  ExpertShape shape;
  int n_rows = 0;
  ExpertList list;
  Int8Rows a;
  Int8Rows h;
  Ranking ranking = {};
  Landing landing = {};
};
void gate_up(const GateUp& p, const Launch& how);

// x[r] += sum_k weights[r][k] down_k(h of the slot), in order of rank, then the shared expert's.
// outside: [slots, d_model] f32, rows that were computed elsewhere; read where a group has no
// address, once the host has answered.
struct Down {
  ExpertShape shape;
  int n_rows = 0;
  ExpertList list;
  Int8Rows h;
  const float* weights = nullptr;         // [n_rows, n_used]
  const float* shared_weights = nullptr;  // [n_rows]
  const float* outside = nullptr;
  float* x = nullptr;               // [n_rows, d_model]
  const int32_t* n_live = nullptr;  // rows from *n_live on stay as they are; null: there are none
  HostAnswers host = {};            // who computes `outside`; null: it is there
  Landing landing = {};
  int64_t down_at = 0;       // in an expert's slot
  uint64_t* sums = nullptr;  // [n_sums], of a single row: what gate_up has read becomes zero again
  int n_sums = 0;
};
void down(const Down& p, const Launch& how);

}  // namespace sluice::backend::cuda
