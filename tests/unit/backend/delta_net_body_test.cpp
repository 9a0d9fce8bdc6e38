// A gated DeltaNet as the kernel computes it (backend/cuda/delta_net_body.h), compiled by g++ with
// a warp as 32 loops and a block's warps one after another: as the CPU computes it, but for the
// order of sums, over several steps, with rows of several sequences. And as its forms for many rows
// (wide_delta_body.h), for four blocks to a head (delta_part_body.h) and for a single row
// (delta_row_body.h) do, to the bit.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/delta_net_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/cpu/delta_net.h"
#include "backend/cuda/delta_row_body.h"
#include "backend/cuda/wide_delta_body.h"
#include "base/random.h"
#include "quant/activation.h"

namespace sluice::backend::cuda {
namespace {

// As delta_net_kernel, a block after the other.
void run_delta_net(const DeltaNetStep& p) {
  const auto tile = std::make_unique<DeltaTile>();
  const int n_live = *p.n_live;
  for (int sequence = 0; sequence < p.n_sequences; ++sequence) {
    const DeltaRows rows = find_rows(p, n_live, sequence);
    for (int head = 0; head < p.n_value_heads; ++head) {
      if (sequence == 0) {
        for (int r = n_live; r < p.n_rows; ++r) write_delta_row(p, r, head, {});
      }
      if (rows.n == 0) continue;
      const DeltaHead own(p, head, sequence, rows);
      std::vector<DeltaColumns> columns(kDeltaWarps);
      for (int w = 0; w < kDeltaWarps; ++w) {
        columns[static_cast<size_t>(w)].load(p, own, w * kDeltaColumns);
      }
      for (int first = 0; first < rows.n; first += kDeltaTile) {
        const int n = std::min(kDeltaTile, rows.n - first);
        for (int i = 0; i < 3 * n; ++i) own.make(p, i % 3, first + i / 3, i / 3, *tile);
        for (DeltaColumns& some : columns) {
          for (int at = 0; at < n; ++at) some.step(*tile, at);
        }
        for (int at = 0; at < n; ++at) own.finish(p, first + at, at, *tile);
      }
      for (const DeltaColumns& some : columns) some.store(p, own);
      for (int item = 0; item < 3; ++item) own.keep_inputs(p, item);
    }
  }
}

// As delta_columns_kernel, of one block.
template <bool logs>
void run_columns(const WideDelta& w, const DeltaHead& own, const DeltaRows& rows, int head,
                 int part) {
  const auto copy = [](float* to, const float* from) { std::memcpy(to, from, 16); };
  const auto tiles = std::make_unique<std::array<WideDeltaTile, 2>>();
  std::vector<WideDeltaColumns> columns(kWideDeltaWarps);
  for (int warp = 0; warp < kWideDeltaWarps; ++warp) {
    WideDeltaColumns& some = columns[static_cast<size_t>(warp)];
    some.load(w.of, own.column_before(w.of, 0), part * kPartColumns + warp * kDeltaColumns);
    some.open(w.of, rows.first, head);
  }
  for (int first = 0; first < rows.n; first += kWideDeltaTile) {
    WideDeltaTile& tile = (*tiles)[static_cast<size_t>(first / kWideDeltaTile % 2)];
    const int n = std::min(kWideDeltaTile, rows.n - first);
    for (int warp = 0; warp < kWideDeltaWarps; ++warp) {
      fetch_delta_rows(w, head, part, rows.first + first, n, warp, tile, copy);
    }
    for (WideDeltaColumns& some : columns) some.take_rows<logs>(w.of, own, tile, first, n);
  }
  for (WideDeltaColumns& some : columns) {
    some.finish(w.of, rows.n);
    some.store(w.of, own.column_after(w.of, 0));
  }
  if (part != 0) return;
  for (int item = 0; item < 3; ++item) own.keep_inputs(w.of, item);
  if (!logs) return;
  for (int warp = 0; warp < kWideDeltaWarps; ++warp) log_delta_rows(w, own, head, rows, warp);
}

// As wide_delta_net, a block after the other.
void run_wide_delta(const DeltaNetStep& p) {
  std::vector<float> made(
      static_cast<size_t>(p.n_rows * wide_delta_cols(p.n_key_heads, p.n_value_heads, p.head_dim)),
      NAN);
  const WideDelta w{p, made.data()};
  const int n_live = *p.n_live;
  for (int first = 0; first < n_live; first += kMadeRows) {
    for (int number = 0; number < 2 * p.n_key_heads + p.n_value_heads; ++number) {
      make_delta_rows(w, number, first, std::min(kMadeRows, n_live - first));
    }
  }
  for (int sequence = 0; sequence < p.n_sequences; ++sequence) {
    const DeltaRows rows = find_rows<16>(p, n_live, sequence);
    for (int head = 0; rows.n > 0 && head < p.n_value_heads; ++head) {
      const DeltaHead own(p, head, sequence, rows);
      for (int part = 0; part * kPartColumns < p.head_dim; ++part) {
        own.logs() ? run_columns<true>(w, own, rows, head, part)
                   : run_columns<false>(w, own, rows, head, part);
      }
    }
  }
  for (int row = 0; row < p.n_rows; ++row) {
    for (int head = 0; head < p.n_value_heads; ++head) {
      finish_wide_delta(p, row, head, row < n_live);
    }
  }
}

// What a block of delta_part_kernel has, and a cluster of them.
struct PartBlock {
  DeltaPartTile tile;
  std::array<DeltaPartColumns, kDeltaPartWarps> columns;
};
using PartCluster = std::array<PartBlock, kDeltaParts>;

// As far as its o is sent.
void run_part(const DeltaNetStep& p, const DeltaHead& own, const DeltaRows& rows, int head,
              PartCluster& cluster, int part) {
  auto& [tile, columns] = cluster[static_cast<size_t>(part)];
  for (int warp = 0; warp < kDeltaPartWarps; ++warp) {
    columns[static_cast<size_t>(warp)].load(p, own.column_before(p, 0),
                                            part * kDeltaPartColumns + warp * kDeltaPartOfWarp);
  }
  if (own.logs()) read_part_positions(p, rows, tile);
  for (int item = 0; item < 3; ++item) {
    DeltaPartMaker maker(p, own, item, part);
    maker.leave_earlier(tile);
    maker.make(p, rows, tile);
  }
  make_part_gates(p, DeltaGateWeights(p, head), head, rows, tile);
  for (int t = 0; t < rows.n; ++t) {
    float* const to = cluster[static_cast<size_t>(t % kDeltaParts)].tile.o[t / kDeltaParts];
    for (DeltaPartColumns& some : columns) {
      some.step(p, tile.rows[t], [&](int column, float o) { to[column] = o; });
    }
  }
}

// As part_delta_net, a cluster after the other.
void run_part_delta(const DeltaNetStep& p) {
  const auto cluster = std::make_unique<PartCluster>();
  for (int sequence = 0; sequence < p.n_sequences; ++sequence) {
    const DeltaRows rows = find_part_rows(p, sequence);
    for (int head = 0; head < p.n_value_heads; ++head) {
      if (sequence == 0) {
        for (int r = *p.n_live; r < p.n_rows; ++r) write_delta_row(p, r, head, {});
      }
      if (rows.n == 0) continue;
      for (PartBlock& block : *cluster) std::memset(&block.tile, 0xff, sizeof(block.tile));
      const DeltaHead own(p, head, sequence, rows);
      for (int part = 0; part < kDeltaParts; ++part) run_part(p, own, rows, head, *cluster, part);
      for (int part = 0; part < kDeltaParts; ++part) {
        auto& [tile, columns] = (*cluster)[static_cast<size_t>(part)];
        for (const DeltaPartColumns& some : columns) some.store(p, own.column_after(p, 0));
        for (int item = 0; item < 3; ++item) keep_part_inputs(p, own, part, rows, tile, item);
        for (int warp = 0; own.logs() && warp < kDeltaPartWarps; ++warp) {
          log_part_rows(p, own, head, part, sequence, rows, tile, warp);
        }
        for (int t = part; t < rows.n; t += kDeltaParts) {
          const int row = rows.first + t;
          PerLane<float4> v = sent_row(p, tile.o[t / kDeltaParts]);
          finish_delta_row(p, row, head, delta_norm_weights(p), delta_out_gate(p, row, head), v);
        }
      }
    }
  }
}

// As row_delta_net: what happens before the wait is done by all before anything else.
struct RowBlock {
  DeltaRowShared shared;
  std::array<DeltaPartColumns, kDeltaPartWarps> columns;
  std::vector<DeltaRowMaker> makers;
};
void run_row_head(const DeltaNetStep& p, const DeltaStepRow& row, int head) {
  const DeltaHead own(p, head, row.sequence, {0, 1}, row.from, row.to);
  const DeltaUpdate update(p, row.sequence, row.position);
  const auto cluster = std::make_unique<std::array<RowBlock, kDeltaParts>>();
  for (int part = 0; part < kDeltaParts; ++part) {
    RowBlock& block = (*cluster)[static_cast<size_t>(part)];
    std::memset(&block.shared, 0xff, sizeof(block.shared));
    for (int warp = 0; warp < kDeltaPartWarps; ++warp) {
      block.columns[static_cast<size_t>(warp)].load(
          p, own.column_before(p, 0), part * kDeltaPartColumns + warp * kDeltaPartOfWarp);
    }
    for (int item = 0; item < 3; ++item) block.makers.emplace_back(p, own, item, part);
  }
  for (int part = 0; part < kDeltaParts; ++part) {
    auto& [shared, columns, makers] = (*cluster)[static_cast<size_t>(part)];
    for (const DeltaRowMaker& maker : makers) maker.make(p, shared);
    DeltaRowGates(p, head).make(shared.row);
    for (DeltaPartColumns& some : columns) {
      step_columns(p, shared, some, own, head, update, [&](int column, const float4& o) {
        store_four((*cluster)[0].shared.o + column, o);
      });
      some.store(p, own.column_after(p, 0));
    }
    for (int item = 0; item < 3; ++item) {
      DeltaRowMaker::leave(p, own, head, item, part, update, shared);
    }
  }
  PerLane<float4> v = sent_row(p, (*cluster)[0].shared.o);
  finish_delta_row(p, 0, head, delta_norm_weights(p), delta_out_gate(p, 0, head), v);
}
void run_row_delta(const DeltaNetStep& p) {
  const DeltaStepRow row(p);
  for (int head = 0; head < p.n_value_heads; ++head) {
    row.exists ? run_row_head(p, row, head) : write_delta_row(p, 0, head, {});
  }
}

// Not-a-numbers too: what nobody wrote.
template <typename T>
void expect_same(const std::vector<T>& a, const std::vector<T>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(T)), 0)
        << what << " " << i << ": " << +a[i] << ", " << +b[i];
  }
}

struct NetCase {
  int n_taps, n_key_heads, n_value_heads, head_dim;
  KeyHeads key_heads;
  GateColumns gate_columns;
};

std::vector<float> some_values(int64_t n, uint64_t seed, float size = 1.0f) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(size * random_signed(random_bits(seed, static_cast<uint64_t>(i))));
  }
  return values;
}

// A layer with the states of three sequences, twice: the CPU's and the kernel's. Arrays end with
// their last number.
class DeltaLayer {
 public:
  static constexpr int kSequences = 3, kStates = 2 * kSequences;
  static constexpr int kPlaces = 20, kMostLogged = 16;

  explicit DeltaLayer(const NetCase& c) {
    net_.n_taps = c.n_taps;
    net_.n_key_heads = c.n_key_heads, net_.n_value_heads = c.n_value_heads;
    net_.head_dim = c.head_dim;
    net_.key_heads = c.key_heads, net_.gate_columns = c.gate_columns;
    conv_ = some_values(net_.conv_cols() * c.n_taps, 1);
    decay_ = some_values(c.n_value_heads, 2);
    for (float& d : decay_) d = -0.1f - std::abs(d);
    bias_ = some_values(c.n_value_heads, 3);
    norm_ = some_values(c.head_dim, 4);
    net_.conv = conv_.data(), net_.decay = decay_.data(), net_.time_bias = bias_.data();
    net_.norm = {norm_.data(), 1e-6f};
    const auto n = static_cast<size_t>(kStates * net_.state_values());
    by_cpu_.assign(n, NAN), by_kernel_.assign(n, NAN);  // what nobody wrote is not read
    cpu_log_.assign(static_cast<size_t>(kSequences * kPlaces * net_.update_values()), NAN);
    kernel_log_ = cpu_log_;
  }

  // Rows of these sequences; then the new states are theirs. Without updates nobody reads
  // positions.
  void step(const std::vector<int32_t>& sequences, int n_padding, uint64_t seed,
            bool leaves_updates = true) {
    const auto n_live = static_cast<int32_t>(sequences.size());
    const int64_t n_rows = n_live + n_padding;
    const std::vector<float> in = some_values(n_rows * net_.in_cols(), seed, 2.0f);
    std::vector<int32_t> padded = sequences, positions;
    std::array<int32_t, kSequences> next = n_tokens_;
    for (const int32_t s : sequences) positions.push_back(next[static_cast<size_t>(s)]++);
    positions.resize(static_cast<size_t>(n_rows), 0);
    padded.resize(static_cast<size_t>(n_rows), 0);
    for (size_t s = 0; s < kSequences; ++s) {
      to_[s] = from_[s] == static_cast<int32_t>(s) ? static_cast<int32_t>(s) + kSequences
                                                   : static_cast<int32_t>(s);
    }
    std::vector<float> cpu(static_cast<size_t>(n_rows * net_.value_cols()), NAN), got = cpu;
    StepView view;
    view.n_rows = n_rows, view.n_live = &n_live, view.sequences = padded.data();
    view.positions = positions.data();
    StateLayerView state{by_cpu_.data(), net_.state_values(), from_, to_, kSequences};
    DeltaNetStep p = parameters(in, padded, n_live, got);
    if (leaves_updates) {
      state.updates = cpu_log_.data(), state.update_stride = net_.update_values();
      state.n_places = kPlaces, state.max_logged_rows = kMostLogged;
      p.updates = kernel_log_.data(), p.update_stride = net_.update_values();
      p.n_places = kPlaces, p.max_logged_rows = kMostLogged;
      p.positions = positions.data();
    }
    cpu::DeltaNet(pool_).run({in.data(), n_rows, net_.in_cols()}, net_, view, state,
                             {cpu.data(), n_rows, net_.value_cols()});
    run_all(p, got);
    expect_near(cpu, got, "out");
    expect_near(by_cpu_, by_kernel_, "states");
    expect_near(cpu_log_, kernel_log_, "updates");
    expect_int8(got, n_rows);
    if (leaves_updates) expect_replayed(p, sequences);
    for (const int32_t s : sequences) from_[s] = to_[s];
    n_tokens_ = next;
  }

 private:
  DeltaNetStep parameters(const std::vector<float>& in, const std::vector<int32_t>& sequences,
                          const int32_t& n_live, std::vector<float>& out) {
    DeltaNetStep p;
    p.in = in.data();
    p.n_rows = static_cast<int>(sequences.size());
    p.n_taps = net_.n_taps;
    p.n_key_heads = net_.n_key_heads, p.n_value_heads = net_.n_value_heads;
    p.head_dim = net_.head_dim;
    p.by_remainder = net_.key_heads == KeyHeads::by_remainder;
    p.gates_by_key_head = net_.gate_columns == GateColumns::by_key_head;
    p.conv = net_.conv, p.decay = net_.decay, p.time_bias = net_.time_bias;
    p.norm = net_.norm.weight, p.eps = net_.norm.eps;
    p.sequences = sequences.data(), p.n_live = &n_live;
    p.states = by_kernel_.data(), p.state_stride = net_.state_values();
    p.from = from_, p.to = to_, p.n_sequences = kSequences;
    p.out = out.data();
    if (net_.head_dim % 32 != 0) return p;
    const auto n_chunks = (net_.value_cols() + 255) / 256, n = p.n_rows * n_chunks;
    q_.assign(static_cast<size_t>(256 * n), 99);
    d_.assign(static_cast<size_t>(8 * n), 99.0f), y_ = d_;
    p.out_int8 = {q_.data(), d_.data(), y_.data(), static_cast<int>(n_chunks)};
    return p;
  }

  // Sums of up to 128 products in another order, after up to 60 rows.
  static void expect_near(const std::vector<float>& a, const std::vector<float>& b,
                          const char* what) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      ASSERT_NEAR(a[i], b[i], 2e-5f * std::max(1.0f, std::abs(a[i]))) << what << " " << i;
    }
  }

  // All that a step writes.
  struct Written {
    std::vector<float> out, states, log, d, y;
    std::vector<int8_t> q;
  };
  // The step in its form for many rows and in those for four blocks to a head, then in the first.
  void run_all(const DeltaNetStep& p, std::vector<float>& out) {
    const Written before{out, by_kernel_, kernel_log_, d_, y_, q_};
    std::vector<Written> others;
    const auto run = [&](void (*form)(const DeltaNetStep&)) {
      form(p);
      others.push_back({out, by_kernel_, kernel_log_, d_, y_, q_});
      // Where they are: the step points to them.
      std::ranges::copy(before.out, out.begin());
      std::ranges::copy(before.states, by_kernel_.begin());
      std::ranges::copy(before.log, kernel_log_.begin());
      std::ranges::copy(before.d, d_.begin());
      std::ranges::copy(before.y, y_.begin());
      std::ranges::copy(before.q, q_.begin());
    };
    run(run_wide_delta);
    if (p.n_rows <= kDeltaPartRows) run(run_part_delta);
    if (p.n_rows == 1) run(run_row_delta);
    run_delta_net(p);
    for (const Written& other : others) {
      expect_same(other.out, out, "out");
      expect_same(other.states, by_kernel_, "states");
      expect_same(other.log, kernel_log_, "updates");
      expect_same(other.d, d_, "d");
      expect_same(other.y, y_, "y");
      expect_same(other.q, q_, "q");
    }
  }

  // Out of the state before the step and what its rows left, the state behind it, to the bit.
  void expect_replayed(const DeltaNetStep& step, const std::vector<int32_t>& sequences) {
    const int32_t s = sequences[0];
    const auto n = static_cast<int>(std::ranges::count(sequences, s));
    if (n > kMostLogged) return;
    const auto n_values = static_cast<size_t>(net_.state_values());
    std::vector<float> states = by_kernel_;
    states.insert(states.end(), n_values, NAN);
    DeltaReplay way{step, s, n_tokens_[static_cast<size_t>(s)], 0, from_[s], kStates};
    way.end = way.begin + n;
    way.of.states = states.data();
    for (int head = 0; head < net_.n_value_heads; ++head) {
      for (int w = 0; w < kDeltaWarps; ++w) replay_columns(way, head, w);
      for (int item = 0; item < 3; ++item) replay_inputs(way, head, item);
    }
    ASSERT_EQ(std::memcmp(states.data() + kStates * n_values,
                          by_kernel_.data() + static_cast<size_t>(to_[s]) * n_values,
                          n_values * sizeof(float)),
              0);
  }

  // What the rows are in int8, by the contract.
  void expect_int8(const std::vector<float>& out, int64_t n_rows) const {
    if (net_.head_dim % 32 != 0) return;
    const auto n_cols = static_cast<size_t>(net_.value_cols()), chunks = (n_cols + 255) / 256;
    std::vector<int8_t> q(n_cols);
    std::vector<float> d(n_cols / 32), y(n_cols / 32);
    for (size_t r = 0; r < static_cast<size_t>(n_rows); ++r) {
      quant::quantize_activation(std::span(out).subspan(r * n_cols, n_cols), q.data(), d.data(),
                                 y.data());
      for (size_t i = 0; i < n_cols; ++i) ASSERT_EQ(q[i], q_[256 * chunks * r + i]) << i;
      for (size_t i = 0; i < d.size(); ++i) {
        ASSERT_EQ(d[i], d_[8 * chunks * r + i]);
        ASSERT_EQ(y[i], y_[8 * chunks * r + i]);
      }
    }
  }

  ThreadPool pool_{1};
  DeltaNetView net_;
  std::vector<float> conv_, decay_, bias_, norm_, by_cpu_, by_kernel_, d_, y_;
  std::vector<float> cpu_log_, kernel_log_;
  std::array<int32_t, kSequences> n_tokens_ = {};
  std::vector<int8_t> q_;
  int32_t from_[kSequences] = {-1, -1, -1}, to_[kSequences] = {};
};

struct DeltaNetBody : testing::TestWithParam<NetCase> {};

INSTANTIATE_TEST_SUITE_P(
    Shapes, DeltaNetBody,
    testing::Values(NetCase{4, 2, 4, 128, KeyHeads::by_remainder, GateColumns::apart},
                    NetCase{4, 2, 6, 128, KeyHeads::by_neighbours, GateColumns::by_key_head},
                    NetCase{4, 3, 3, 64, KeyHeads::by_remainder, GateColumns::apart},
                    NetCase{2, 1, 5, 8, KeyHeads::by_neighbours, GateColumns::by_key_head},
                    NetCase{1, 2, 4, 24, KeyHeads::by_remainder, GateColumns::by_key_head},
                    NetCase{3, 2, 2, 104, KeyHeads::by_remainder, GateColumns::apart}));

// A prompt longer than a tile, single rows, several sequences at once, and padding.
TEST_P(DeltaNetBody, IsAsOnTheCpu) {
  DeltaLayer layer(GetParam());
  layer.step({0}, 0, 10);
  layer.step({0}, 1, 11);
  layer.step(std::vector<int32_t>(37, 1), 0, 12);
  layer.step({2, 2, 0, 1}, 0, 13);
  layer.step({1, 1, 1, 0, 0}, 3, 14);
  layer.step({2}, 15, 15);
  layer.step({2}, 0, 18);
  layer.step({1}, 0, 19);
  layer.step(std::vector<int32_t>(16, 0), 0, 16);
  std::vector<int32_t> three(19, 2);
  three.resize(20, 0);
  three.resize(55, 1);
  layer.step(three, 9, 17);
}

TEST_P(DeltaNetBody, LeavesNoUpdatesWhereThereIsNoPlaceForThem) {
  DeltaLayer layer(GetParam());
  for (const int n_padding : {0, 1, 0}) layer.step({1}, n_padding, 20, false);
  layer.step({2, 1, 1}, 0, 21, false);
  layer.step(std::vector<int32_t>(20, 0), 0, 22, false);
}

}  // namespace
}  // namespace sluice::backend::cuda
