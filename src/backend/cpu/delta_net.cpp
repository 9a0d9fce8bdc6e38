// See delta_net.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/delta_net.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/attend_wide.h"
#include "backend/cpu/rms_norm.h"
#include "base/check.h"
#include "quant/dot.h"
#include "quant/swiglu.h"

namespace sluice::backend::cpu {
namespace {

float silu(float x) { return x / (1.0f + quant::contract_exp(-x)); }

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// At length 1, or 1 / sqrt(head_dim).
void normalise(std::span<float> head, float eps, float length) {
  const float square = quant::dot_f32(head.data(), head.data(), std::ssize(head));
  const float scale = length / std::sqrt(square + eps);
  for (float& x : head) x *= scale;
}

}  // namespace

void DeltaNet::find_runs(const StepView& step) {
  const int64_t n_live = *step.n_live;
  runs_.clear();
  run_of_.resize(static_cast<size_t>(n_live));
  rows_.resize(static_cast<size_t>(n_live));
  const auto run_of = [&](int32_t sequence) {
    return std::ranges::find(runs_, sequence, &Run::sequence);
  };
  for (int64_t r = 0; r < n_live; ++r) {
    const auto found = run_of(step.sequences[r]);
    found == runs_.end() ? runs_.push_back({step.sequences[r], 0, 1}) : void(++found->n);
  }
  int64_t next = 0;
  for (Run& run : runs_) {
    run.first = next;
    next += run.n;
    run.n = 0;
  }
  for (int64_t r = 0; r < n_live; ++r) {
    const auto run = run_of(step.sequences[r]);
    const auto at = static_cast<size_t>(run->first + run->n++);
    rows_[at] = r;
    run_of_[at] = static_cast<int32_t>(run - runs_.begin());
  }
}

// The convolution's input of a head, `back` tokens before token t of a run; null: before the text.
static const float* input_before(ConstRowsView in, std::span<const int64_t> rows,
                                 const float* state, const DeltaNetView& net, int64_t t, int back) {
  if (t >= back) return in.row(rows[static_cast<size_t>(t - back)]);
  return state ? state + (net.n_taps - 1 + t - back) * net.conv_cols() : nullptr;
}

// q, k or v of one head: heads of q come first, then k, then v.
void DeltaNet::prepare_head(const Call& call, const Run& run, int64_t t, int head) {
  const DeltaNetView& net = call.net;
  const int dim = net.head_dim;
  const int64_t at = run.first + t, column = int64_t{head} * dim;
  const std::span rows(rows_.data() + run.first, static_cast<size_t>(run.n));
  float* const out = mixed(call, at) + column;
  std::fill_n(out, dim, 0.0f);
  for (int tap = 0; tap < net.n_taps; ++tap) {
    const float* const input =
        input_before(call.in, rows, call.state.before(run.sequence), net, t, net.n_taps - 1 - tap);
    if (!input) continue;
    const float* const taps = net.conv + column * net.n_taps + tap;
    for (int i = 0; i < dim; ++i)
      out[i] = std::fma(taps[i * net.n_taps], input[column + i], out[i]);
  }
  for (int i = 0; i < dim; ++i) out[i] = silu(out[i]);

  float* const update = update_of(call, run, at);
  if (update) {
    std::copy_n(call.in.row(rows[static_cast<size_t>(t)]) + column, dim, update + column);
  }
  const std::span values(out, static_cast<size_t>(dim));
  const int value_head = head - 2 * net.n_key_heads;
  if (head < net.n_key_heads) {
    normalise(values, net.norm.eps, 1.0f / std::sqrt(static_cast<float>(dim)));
  } else if (value_head < 0) {
    normalise(values, net.norm.eps, 1.0f);
    if (update) std::copy_n(out, dim, update + net.k_update() + column - net.key_cols());
  } else {
    const float* const row = call.in.row(rows[static_cast<size_t>(t)]);
    const float rate = softplus(row[net.a_column(value_head)] + net.time_bias[value_head]);
    const float decay = quant::contract_exp(net.decay[value_head] * rate);
    gates_[static_cast<size_t>(at * net.n_value_heads + value_head)] = {
        decay, quant::sigmoid(row[net.b_column(value_head)])};
    if (update) update[net.decay_update() + value_head] = decay;
  }
}

// Where the token at a place in rows_ leaves its update; null: nowhere.
float* DeltaNet::update_of(const Call& call, const Run& run, int64_t at) const {
  if (!call.state.logs(run.n)) return nullptr;
  return call.state.update(run.sequence, call.positions[rows_[static_cast<size_t>(at)]]);
}

// The run's last n_taps - 1 inputs of a head, older ones included where the run is shorter.
void DeltaNet::keep_inputs(const Call& call, const Run& run, int64_t t, int head) const {
  const DeltaNetView& net = call.net;
  const int dim = net.head_dim, n_kept = net.n_taps - 1;
  const std::span rows(rows_.data() + run.first, static_cast<size_t>(run.n));
  for (int i = 0; i < n_kept; ++i) {
    const float* const input =
        input_before(call.in, rows, call.state.before(run.sequence), net, t, n_kept - 1 - i);
    const int64_t column = int64_t{head} * dim;
    float* const kept = call.state.after(run.sequence) + i * net.conv_cols() + column;
    input ? std::copy_n(input + column, dim, kept) : std::fill_n(kept, dim, 0.0f);
  }
}

void DeltaNet::update_columns(const Call& call, const Run& run, int head, int first,
                              std::vector<DeltaToken>& tokens) const {
  const DeltaNetView& net = call.net;
  const int64_t dim = net.head_dim;
  tokens.resize(static_cast<size_t>(run.n));
  for (int64_t t = 0; t < run.n; ++t) {
    const int64_t at = run.first + t;
    const auto& [decay, beta] = gates_[static_cast<size_t>(at * net.n_value_heads + head)];
    const float* const q = mixed(call, at) + net.key_head(head) * dim;
    float* const update = update_of(call, run, at);
    tokens[static_cast<size_t>(t)] = {
        .q = q,
        .k = q + net.key_cols(),
        .v = mixed(call, at) + 2 * net.key_cols() + head * dim + first,
        .o = call.out.row(rows_[static_cast<size_t>(at)]) + head * dim + first,
        .entered = update ? update + net.entered_update() + head * dim + first : nullptr,
        .decay = decay,
        .beta = beta};
  }
  const int64_t matrix = net.conv_state() + (head * dim + first) * dim;
  const float* const before = call.state.before(run.sequence);
  const DeltaColumns columns{before ? before + matrix : nullptr,
                             call.state.after(run.sequence) + matrix, dim,
                             std::min(kDeltaColumns, net.head_dim - first)};
  (attends_wide() ? wide_delta_rule : delta_rule)(tokens.data(), run.n, columns);
}

void DeltaNet::run(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                   const StateLayerView& state, RowsView out) {
  CHECK(net.head_dim % 8 == 0 && in.n_cols == net.in_cols() && out.n_cols == net.value_cols());
  const Call call{in, net, state, step.positions, out};
  const int64_t n_live = *step.n_live;
  find_runs(step);
  const auto grow = [](auto& values, int64_t n) {
    values.resize(std::max(values.size(), static_cast<size_t>(n)));
  };
  grow(mixed_, n_live * net.conv_cols());
  grow(gates_, n_live * net.n_value_heads);

  const int n_heads = 2 * net.n_key_heads + net.n_value_heads;
  pool_.parallel_for(n_live * n_heads, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i / n_heads;
      const Run& run = runs_[static_cast<size_t>(run_of_[static_cast<size_t>(at)])];
      const auto head = static_cast<int>(i % n_heads);
      prepare_head(call, run, at - run.first, head);
      if (at + 1 == run.first + run.n) keep_inputs(call, run, run.n - 1, head);
    }
  });
  const int n_parts = (net.head_dim + kDeltaColumns - 1) / kDeltaColumns;
  const int64_t n_pieces = std::ssize(runs_) * net.n_value_heads * n_parts;
  tokens_.resize(static_cast<size_t>(pool_.n_threads()));
  pool_.parallel_for(n_pieces, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      update_columns(call, runs_[static_cast<size_t>(i / n_parts / net.n_value_heads)],
                     static_cast<int>(i / n_parts % net.n_value_heads),
                     static_cast<int>(i % n_parts) * kDeltaColumns,
                     tokens_[static_cast<size_t>(thread)]);
    }
  });
  const auto dim = static_cast<size_t>(net.head_dim);
  pool_.parallel_for(n_live * net.n_value_heads, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / net.n_value_heads, column = i % net.n_value_heads * net.head_dim;
      float* const o = out.row(row) + column;
      const float* const z = in.row(row) + net.conv_cols() + column;
      rms_norm({o, dim}, net.norm, o);
      for (size_t k = 0; k < dim; ++k) o[k] *= silu(z[k]);
    }
  });
  std::fill(out.row(n_live), out.row(out.n_rows), 0.0f);
}

}  // namespace sluice::backend::cpu
