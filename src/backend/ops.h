// The seam between math and mechanism: the operations a model is made of, at the grain of fused
// kernels. Every one works on any number of rows, and a row's result does not depend on which other
// rows are computed with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backend/buffer.h"
#include "backend/pick.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend {

class Ops {
 public:
  virtual ~Ops() = default;

  // Memory the other operations can work in.
  virtual Buffer allocate(uint64_t n_bytes) = 0;

  // x[r] = table[tokens[r]]. table: [d_model, n_vocab].
  virtual void embed(const WeightView& table, const StepView& step, RowsView x) = 0;

  // out[r] = the projections of norm(x[r]), side by side. out: [n_rows, sum of their n_rows].
  virtual void project_in(ConstRowsView x, const NormView& norm,
                          std::span<const Projection> projections, RowsView out) = 0;

  // qkv: [n_rows, qkv_cols], as project_in left it; q and k are overwritten. Normalises and turns q
  // and k, appends k and v to the cache, then attends to every earlier position of the row's
  // sequence: out[r] = softmax(q k^T / sqrt(head_dim)) v, times sigmoid(gate) where the output is
  // gated. out: [n_rows, q_cols].
  virtual void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                      const KvLayerView& kv, RowsView out) = 0;

  // A gated DeltaNet in attention's place. in: [n_rows, in_cols], as project_in left it. For the
  // rows of a sequence in order, u being its q k v, with the state S that the row before left:
  //   q k v = SiLU(sum_i conv_i u_{t - n_taps + 1 + i});  q and k of every head at length 1
  //   d = exp(decay softplus(a + time_bias));  S = d S + k (x) sigmoid(b) (v - d S^T k)
  //   out[r] = norm(S^T q / sqrt(head_dim)) SiLU(z), for every value head. out: [n_rows,
  //   value_cols]
  virtual void delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                         const StateLayerView& state, RowsView out) = 0;

  // A state that delta_net left behind earlier tokens, once more, out of their updates: the same
  // bits.
  virtual void delta_replay(const DeltaNetView& net, const StateLayerView& state,
                            const StateReplay& replay) = 0;

  // x[r] += W in[r] + bias.
  virtual void project_add(ConstRowsView in, const Projection& projection, RowsView x) = 0;

  // a = norm(x) in the formats it asks for; routing from the router's scores of norm(x).
  virtual void route(ConstRowsView x, const NormView& norm, const RouterView& router,
                     const ExpertInputView& a, const RoutingView& routing) = 0;

  // x[r] += sum_k w_k expert_k(a[r]) (+ the shared expert), to the bit as the numeric contract
  // says.
  virtual void experts(const ExpertsView& experts, const ExpertInputView& a,
                       const RoutingView& routing, RowsView x) = 0;

  // logits[i] = W norm(x[step.logit_rows[first + i]]), for as many as the step wants and `logits`
  // has rows for. logits: [at most so many, n_vocab].
  virtual void logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
                      const WeightView& output, RowsView logits) = 0;

  // picks[i] = the best of logits[i], as many as the step wants, of those rows. picks: as many as
  // `logits` has rows for, in memory that the host reads.
  virtual void pick(ConstRowsView logits, const StepView& step, int64_t first,
                    PickedRow* picks) = 0;
};

inline Allocate memory_of(Ops& ops) {
  return [&ops](uint64_t n_bytes) { return ops.allocate(n_bytes); };
}

// On the threads of the pool, which must outlive it.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool);

}  // namespace sluice::backend
