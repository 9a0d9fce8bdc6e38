// Gated DeltaNets and the gate on attention's output on the device, against the CPU's operations:
// near them for steps of every width, and the same bits whatever is computed together and however
// many rows a step has.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "backend/cuda/delta_net.h"
#include "backend/cuda/launch.h"
#include "backend/mailbox.h"
#include "gpu/ops_test.h"

namespace sluice::backend::cuda::test {
namespace {

struct NetShape {
  int n_taps, n_key_heads, n_value_heads, head_dim;
  KeyHeads key_heads;
  GateColumns gate_columns;
};
// Those of the 35B and 80B models first.
constexpr NetShape kShapes[] = {{4, 16, 32, 128, KeyHeads::by_remainder, GateColumns::apart},
                                {4, 16, 32, 128, KeyHeads::by_neighbours, GateColumns::by_key_head},
                                {3, 3, 6, 64, KeyHeads::by_remainder, GateColumns::apart},
                                {4, 2, 4, 16, KeyHeads::by_neighbours, GateColumns::apart},
                                {1, 3, 6, 24, KeyHeads::by_remainder, GateColumns::by_key_head},
                                {6, 1, 2, 104, KeyHeads::by_neighbours, GateColumns::apart}};

class DeltaNetTest : public OpsTest {
 protected:
  static constexpr int kSequences = 16, kStates = 2 * kSequences;
  static constexpr int kPlaces = 20, kMostLogged = 16;

  // A layer and its states, on one side.
  struct Layer {
    DeltaNetView net;
    float* states = nullptr;
    float* updates = nullptr;
  };
  Layer layer_on(Side& side, const NetShape& shape) {
    Layer layer;
    DeltaNetView& net = layer.net;
    net.n_taps = shape.n_taps;
    net.n_key_heads = shape.n_key_heads, net.n_value_heads = shape.n_value_heads;
    net.head_dim = shape.head_dim;
    net.key_heads = shape.key_heads, net.gate_columns = shape.gate_columns;
    net.conv = side.put(random_values(count(net.conv_cols() * net.n_taps), 1));
    std::vector<float> decay = random_values(count(net.n_value_heads), 2);
    for (float& d : decay) d = -0.1f - std::abs(d);
    net.decay = side.put(decay);
    net.time_bias = side.put(random_values(count(net.n_value_heads), 3));
    net.norm = {side.put(norm_weights(count(net.head_dim), 4)), 1e-6f};
    layer.states = side.put(std::vector<float>(count(kStates * net.state_values()), NAN));
    layer.updates =
        side.put(std::vector<float>(count(kSequences * kPlaces * net.update_values()), NAN));
    return layer;
  }

  struct Result {
    std::vector<float> out, states, updates;
  };
  Result run(Side& side, Ops& ops, const Layer& layer, const std::vector<int32_t>& sequences,
             int n_padding, const std::vector<int32_t>& from, const std::vector<int32_t>& to,
             uint64_t seed,
             const std::vector<int32_t>& n_before = std::vector<int32_t>(kSequences, 0)) {
    Result result;
    result.out = run_rows(side, ops, layer, sequences, n_padding, from, to, seed, n_before);
    result.states = states_of(side, layer), result.updates = updates_of(side, layer);
    return result;
  }
  static std::vector<float> states_of(Side& side, const Layer& layer) {
    return side.get(layer.states, count(kStates * layer.net.state_values()));
  }
  static std::vector<float> updates_of(Side& side, const Layer& layer) {
    return side.get(layer.updates, count(kSequences * kPlaces * layer.net.update_values()));
  }
  // Rows of these sequences, and padding; the input of a row is that of its sequence and position,
  // of which each sequence has so many already.
  std::vector<float> run_rows(Side& side, Ops& ops, const Layer& layer,
                              const std::vector<int32_t>& sequences, int n_padding,
                              const std::vector<int32_t>& from, const std::vector<int32_t>& to,
                              uint64_t seed, std::vector<int32_t> n_before) {
    const DeltaNetView& net = layer.net;
    const auto n_live = static_cast<int32_t>(sequences.size());
    const int64_t n_rows = n_live + n_padding;
    std::vector<float> in;
    std::vector<int32_t> positions;
    for (const int32_t s : sequences) {
      positions.push_back(n_before[count(s)]++);
      const auto row = random_values(
          count(net.in_cols()), seed + static_cast<uint64_t>(1000 * s + positions.back()), 2.0f);
      in.insert(in.end(), row.begin(), row.end());
    }
    positions.resize(count(n_rows), 0);
    in.resize(count(n_rows * net.in_cols()), 0.5f);
    std::vector<int32_t> padded = sequences;
    padded.resize(count(n_rows), 0);
    StepView step;
    step.n_rows = n_rows;
    step.n_live = side.put(std::vector<int32_t>{n_live});
    step.sequences = side.put(padded);
    step.positions = side.put(positions);
    float* const out = side.put(std::vector<float>(count(n_rows * net.value_cols()), NAN));
    ops.delta_net({side.put(in), n_rows, net.in_cols()}, net, step,
                  {layer.states, net.state_values(), side.put(from), side.put(to), kSequences,
                   layer.updates, net.update_values(), kPlaces, kMostLogged},
                  {out, n_rows, net.value_cols()});
    if (&side == gpu.get()) stream->finish();
    return side.get(out, count(n_rows * net.value_cols()));
  }

  // All that a step leaves in memory, launched so.
  std::vector<float> run_form(const NetShape& shape, const std::vector<int32_t>& sequences,
                              int n_padding, bool from_zeros, const Launch& launch) {
    const Layer layer = layer_on(*gpu, shape);
    const DeltaNetView& net = layer.net;
    const int n_rows = static_cast<int>(sequences.size()) + n_padding;
    const int64_t n_chunks = (net.value_cols() + 255) / 256, n_out = n_rows * net.value_cols();
    std::vector<int32_t> padded = sequences, positions(count(n_rows)), from(kSequences), to = from;
    padded.resize(count(n_rows), 0);
    std::iota(positions.begin(), positions.end(), 90);
    std::iota(from.begin(), from.end(), 0);
    std::iota(to.begin(), to.end(), kSequences);
    if (from_zeros) from.assign(kSequences, -1);
    DeltaNetStep p;
    p.in = gpu->put(random_values(count(n_rows * net.in_cols()), 30, 2.0f));
    p.n_rows = n_rows;
    p.n_taps = shape.n_taps;
    p.n_key_heads = shape.n_key_heads, p.n_value_heads = shape.n_value_heads;
    p.head_dim = shape.head_dim;
    p.by_remainder = shape.key_heads == KeyHeads::by_remainder;
    p.gates_by_key_head = shape.gate_columns == GateColumns::by_key_head;
    p.conv = net.conv, p.decay = net.decay, p.time_bias = net.time_bias;
    p.norm = net.norm.weight, p.eps = net.norm.eps;
    p.sequences = gpu->put(padded), p.positions = gpu->put(positions);
    p.n_live = gpu->put(std::vector<int32_t>{static_cast<int32_t>(sequences.size())});
    float* const states = gpu->put(random_values(count(kStates * net.state_values()), 31));
    p.states = states, p.state_stride = net.state_values();
    p.from = gpu->put(from), p.to = gpu->put(to), p.n_sequences = kSequences;
    p.updates = layer.updates, p.update_stride = net.update_values();
    p.n_places = kPlaces, p.max_logged_rows = kMostLogged;
    p.out = gpu->put(std::vector<float>(count(n_out), NAN));
    std::vector<float> int8(count(n_rows * n_chunks * (64 + 16)), 0.0f);
    if (shape.head_dim % 32 == 0) {
      float* const at = gpu->put(int8);
      float* const d = at + 64 * n_rows * n_chunks;
      p.out_int8 = {reinterpret_cast<int8_t*>(at), d, d + 8 * n_rows * n_chunks,
                    static_cast<int>(n_chunks)};
    }
    cuda::delta_net(p, launch);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<float> all = gpu->get(p.out, count(n_out));
    const auto add = [&](const float* part, int64_t n) {
      const std::vector<float> values = gpu->get(part, count(n));
      all.insert(all.end(), values.begin(), values.end());
    };
    add(states, kStates * net.state_values());
    add(p.updates, kSequences * kPlaces * net.update_values());
    if (p.out_int8) add(reinterpret_cast<const float*>(p.out_int8.q), std::ssize(int8));
    return all;
  }

  // What the sequence's rows give in steps of 16 at most, and the state behind them in the end.
  struct Text {
    std::vector<float> out, state, updates;
  };
  Text narrow_text(const NetShape& shape, int32_t sequence, int n_rows, uint64_t seed) {
    const Layer layer = layer_on(*gpu, shape);
    const DeltaNetView& net = layer.net;
    std::vector<int32_t> from(kSequences, -1), to(kSequences, sequence), before(kSequences, 0);
    Text text;
    int32_t& n_done = before[count(sequence)];
    while (n_done < n_rows) {
      const int n = std::min(n_rows - n_done, 16);
      const std::vector<float> out =
          run_rows(*gpu, *gpu_ops, layer, std::vector<int32_t>(count(n), sequence), 0, from, to,
                   seed, before);
      text.out.insert(text.out.end(), out.begin(), out.end());
      n_done += n;
      from = to;
      to[count(sequence)] = (to[count(sequence)] + kSequences) % kStates;
    }
    text.state = part(states_of(*gpu, layer), from[count(sequence)] * net.state_values(),
                      net.state_values());
    const int64_t n_updates = kPlaces * net.update_values();
    text.updates = part(updates_of(*gpu, layer), sequence * n_updates, n_updates);
    return text;
  }
  static std::vector<float> part(const std::vector<float>& of, int64_t first, int64_t n) {
    const auto at = of.begin() + static_cast<std::ptrdiff_t>(first);
    return {at, at + static_cast<std::ptrdiff_t>(n)};
  }

  // Of a text from position kFirst on, whose steps have so many rows: state i is the one behind i
  // rows, of those that steps end with.
  static constexpr int kFirst = 13;  // so that the places of updates are used from the middle on
  void take_steps(const Layer& layer, int32_t sequence, int n_rows, int width, uint64_t seed) {
    std::vector<int32_t> from(kSequences, -1), to(kSequences, 0), before(kSequences, kFirst);
    for (int done = 0; done < n_rows;) {
      const int n = std::min(width, n_rows - done);
      done += n;
      to[count(sequence)] = done;
      run_rows(*gpu, *gpu_ops, layer, std::vector<int32_t>(count(n), sequence), 0, from, to, seed,
               before);
      before[count(sequence)] = kFirst + done;
      from = to;
    }
  }
  std::vector<float> state_of(const Layer& layer, int i) {
    const int64_t n = layer.net.state_values();
    return gpu->get(layer.states + i * n, count(n));
  }

  // Not-a-numbers too.
  static void expect_same(const std::vector<float>& a, const std::vector<float>& b,
                          const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(float)), 0)
          << what << ", " << i << ": " << a[i] << ", not " << b[i];
    }
  }

  // Sums of up to 128 products in another order; errors of earlier rows stay in S and fade.
  static void expect_near(const std::vector<float>& a, const std::vector<float>& b,
                          const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      ASSERT_NEAR(a[i], b[i], 5e-5f * std::max(1.0f, std::abs(a[i]))) << what << ", " << i;
    }
  }
};

// Steps of every width, one after another: single rows of several texts, rows of one text, prompts.
TEST_F(DeltaNetTest, IsNearTheCpus) {
  for (const NetShape& shape : kShapes) {
    const Layer on_cpu = layer_on(host, shape), on_gpu = layer_on(*gpu, shape);
    std::vector<int32_t> from(kSequences, -1), to(kSequences);
    std::iota(to.begin(), to.end(), 0);
    uint64_t seed = 100;
    const auto step = [&](const std::vector<int32_t>& sequences, int n_padding) {
      seed += 100'000;
      const Result want = run(host, *cpu_ops, on_cpu, sequences, n_padding, from, to, seed);
      const Result got = run(*gpu, *gpu_ops, on_gpu, sequences, n_padding, from, to, seed);
      const std::string what = cat("heads of ", shape.head_dim, ", ", sequences.size(), " rows");
      expect_near(want.out, got.out, what);
      expect_near(want.states, got.states, what + ", states");
      expect_near(want.updates, got.updates, what + ", updates");
      for (const int32_t s : sequences) {
        from[count(s)] = to[count(s)];
        to[count(s)] = (from[count(s)] + kSequences) % kStates;
      }
    };
    for (int width = 1; width <= 16; ++width) {
      std::vector<int32_t> sequences(count(width));
      std::iota(sequences.begin(), sequences.end(), 0);
      step(sequences, 16 - width);
      step(std::vector<int32_t>(count(width), 3), 0);
    }
    step({1, 1, 1, 0, 5, 5}, 2);
    step(std::vector<int32_t>(300, 7), 0);
    std::vector<int32_t> two(50, 2);
    two.resize(90, 9);
    step(two, 0);
  }
}

TEST_F(DeltaNetTest, BitsDoNotDependOnWhatIsComputedTogether) {
  const NetShape& shape = kShapes[0];
  std::vector<int32_t> none(kSequences, -1), to(kSequences);
  std::iota(to.begin(), to.end(), 0);
  const Layer whole = layer_on(*gpu, shape);
  std::vector<int32_t> sequences(40, 4);
  sequences.insert(sequences.end(), 23, 6);
  const Result together = run(*gpu, *gpu_ops, whole, sequences, 0, none, to, 7);
  const auto n_state = count(whole.net.state_values());
  for (const int32_t s : {4, 6}) {
    const Layer alone = layer_on(*gpu, shape);
    const Result one =
        run(*gpu, *gpu_ops, alone, std::vector<int32_t>(s == 4 ? size_t{40} : size_t{23}, s), 5,
            none, to, 7);
    const auto n = count((s == 4 ? 40 : 23) * whole.net.value_cols());
    const auto first = count((s == 4 ? 0 : 40) * whole.net.value_cols());
    EXPECT_EQ(std::memcmp(one.out.data(), together.out.data() + first, n * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(one.states.data() + count(s) * n_state,
                          together.states.data() + count(s) * n_state, n_state * sizeof(float)),
              0);
  }
}

// A wide step's rows are made, taken through the state and finished by kernels of their own.
TEST_F(DeltaNetTest, WideStepsHaveTheBitsOfNarrowOnes) {
  struct Share {
    int32_t sequence;
    int n_rows;
  };
  struct Case {
    std::vector<Share> shares;
    int n_padding;
  };
  const Case cases[] = {{{{0, 17}}, 0},
                        {{{5, 100}}, 3},
                        {{{2, 600}}, 0},
                        {{{9, 16}, {3, 1}, {0, 40}, {15, 2}, {7, 33}}, 20}};
  for (const NetShape& shape : kShapes) {
    for (const Case& c : cases) {
      const Layer layer = layer_on(*gpu, shape);
      const DeltaNetView& net = layer.net;
      std::vector<int32_t> sequences, from(kSequences, -1), to(kSequences);
      std::iota(to.begin(), to.end(), 0);
      for (const Share& share : c.shares) {
        sequences.insert(sequences.end(), count(share.n_rows), share.sequence);
      }
      const Result wide = run(*gpu, *gpu_ops, layer, sequences, c.n_padding, from, to, 50);
      int64_t first = 0;
      for (const auto& [sequence, n_rows] : c.shares) {
        const std::string what =
            cat("heads of ", shape.head_dim, ", ", n_rows, " of ", sequences.size(), " rows");
        const Text narrow = narrow_text(shape, sequence, n_rows, 50);
        const int64_t n_out = n_rows * net.value_cols(), n_state = net.state_values();
        expect_same(part(wide.out, first, n_out), narrow.out, what);
        expect_same(part(wide.states, sequence * n_state, n_state), narrow.state, what + ", state");
        const int64_t n_updates = kPlaces * net.update_values();
        const std::vector<float> updates = part(wide.updates, sequence * n_updates, n_updates);
        expect_same(
            updates,
            n_rows <= kMostLogged ? narrow.updates : std::vector<float>(updates.size(), NAN),
            what + ", updates");
        first += n_out;
      }
      const int64_t n_padding = c.n_padding * net.value_cols();
      expect_same(part(wide.out, first, n_padding), std::vector<float>(count(n_padding)),
                  "padding");
    }
  }
}

// The state and the convolution's inputs that the first step leaves are those that the second
// reads.
TEST_F(DeltaNetTest, WideStepsGoOnFromEachOther) {
  const NetShape& shape = kShapes[0];
  const Layer layer = layer_on(*gpu, shape);
  const DeltaNetView& net = layer.net;
  std::vector<int32_t> none(kSequences, -1), first(kSequences, 4), second(kSequences, 20);
  std::vector<int32_t> before(kSequences, 0);
  const Result one = run(*gpu, *gpu_ops, layer, std::vector<int32_t>(70, 4), 0, none, first, 50);
  before[4] = 70;
  const Result two =
      run(*gpu, *gpu_ops, layer, std::vector<int32_t>(51, 4), 2, first, second, 50, before);
  const Text narrow = narrow_text(shape, 4, 121, 50);
  const int64_t n_one = 70 * net.value_cols(), n_two = 51 * net.value_cols();
  expect_same(one.out, part(narrow.out, 0, n_one), "the first 70 rows");
  expect_same(part(two.out, 0, n_two), part(narrow.out, n_one, n_two), "51 more rows");
  expect_same(part(two.states, 20 * net.state_values(), net.state_values()), narrow.state, "state");
}

// By the updates that steps of two to sixteen rows left, to the middle of a step too: the states
// behind single rows.
TEST_F(DeltaNetTest, ReplayedUpdatesLeadToTheStatesOfSteps) {
  constexpr int32_t kSequence = 5;
  constexpr int kSpare = kStates - 1;
  for (const NetShape& shape : kShapes) {
    const Layer singly = layer_on(*gpu, shape);
    take_steps(singly, kSequence, kPlaces, 1, 60);
    std::vector<std::vector<float>> want(1);  // behind so many rows
    for (int i = 1; i <= kPlaces; ++i) want.push_back(state_of(singly, i));
    for (int width = 2; width <= kMostLogged; ++width) {
      const Layer layer = layer_on(*gpu, shape);
      const DeltaNetView& net = layer.net;
      take_steps(layer, kSequence, kPlaces, width, 60);
      for (int begin = 0; begin < kPlaces; begin += width) {
        const int from = begin == 0 ? -1 : begin;
        for (const int end : {begin + 1, std::min(begin + width, kPlaces), kPlaces}) {
          gpu_ops->delta_replay(net,
                                {layer.states, net.state_values(), nullptr, nullptr, kSequences,
                                 layer.updates, net.update_values(), kPlaces, kMostLogged},
                                {kSequence, kFirst + begin, kFirst + end, from, kSpare});
          stream->finish();
          expect_same(state_of(layer, kSpare), want[count(end)],
                      cat("heads of ", shape.head_dim, ", steps of ", width, " rows, rows ", begin,
                          " to ", end));
        }
      }
    }
  }
}

// A block to a head and four of them, of a single row too: the same bits, also in int8 and in what
// rows leave behind.
TEST_F(DeltaNetTest, FourBlocksOfAHeadHaveTheBitsOfOne) {
  Launch form = how;
  if (!form.clusters) GTEST_SKIP() << "blocks of this card form no clusters";
  struct Case {
    std::vector<int32_t> sequences;
    int n_padding;
    bool from_zeros;
  };
  const Case cases[] = {{{0}, 0, false},
                        {{6}, 0, true},
                        {{}, 1, false},
                        {{0}, 1, false},
                        {{3, 3}, 1, true},
                        {{7, 7, 7, 2, 9, 9}, 1, false},
                        {std::vector<int32_t>(16, 5), 0, false}};
  for (const NetShape& shape : kShapes) {
    for (const Case& c : cases) {
      std::vector<float> got[2];
      for (const bool clusters : {false, true}) {
        form.clusters = clusters;
        got[clusters ? 1 : 0] = run_form(shape, c.sequences, c.n_padding, c.from_zeros, form);
      }
      expect_same(got[1], got[0],
                  cat("heads of ", shape.head_dim, ", ", c.sequences.size(), " rows and ",
                      c.n_padding, " of padding"));
    }
  }
}

struct GateCase {
  int n_heads, n_kv_heads, head_dim, n_pairs, n_rows;
  Type kv;
};

using AttendGateTest = OpsTest;

// Decode's kernel, the one for any cache, and that of prompts.
TEST_F(AttendGateTest, LetsThroughWhatTheCpusDoes) {
  for (const GateCase& c : {GateCase{16, 2, 256, 32, 5, Type::f16},
                            {4, 2, 64, 8, 1, Type::bf16},
                            {4, 1, 128, 16, 16, Type::q8_0},
                            {16, 2, 256, 32, 70, Type::f16},
                            {4, 2, 64, 8, 40, Type::f32}}) {
    constexpr int kTokens = 16;
    const int n_pages = (c.n_rows + kTokens - 1) / kTokens;
    std::vector<float> frequencies(count(c.n_pairs), 1.0f);
    const auto attend = [&](Side& side, Ops& ops) {
      AttentionView a;
      a.n_heads = c.n_heads, a.n_kv_heads = c.n_kv_heads, a.head_dim = c.head_dim;
      a.is_gated = true;
      a.head_norm = HeadNorm::per_head;
      a.q_norm = {side.put(norm_weights(count(c.head_dim), 5)), 1e-6f};
      a.k_norm = {side.put(norm_weights(count(c.head_dim), 6)), 1e-6f};
      a.rope = {RopePairing::halves, frequencies, 1.0f};
      std::vector<int32_t> positions(count(c.n_rows)), pages(count(n_pages));
      std::iota(positions.begin(), positions.end(), 0);
      std::iota(pages.begin(), pages.end(), 0);
      std::vector<float> angles;
      for (int r = 0; r < c.n_rows; ++r) {
        for (int j = 0; j < c.n_pairs; ++j)
          angles.push_back(std::cos(0.1f * static_cast<float>(r * (j + 1))));
        for (int j = 0; j < c.n_pairs; ++j)
          angles.push_back(std::sin(0.1f * static_cast<float>(r * (j + 1))));
      }
      StepView step;
      step.n_rows = c.n_rows;
      step.n_live = side.put(std::vector<int32_t>{c.n_rows});
      step.positions = side.put(positions);
      step.sequences = side.put(std::vector<int32_t>(count(c.n_rows), 0));
      step.angles = side.put(angles);
      step.page_table = side.put(pages);
      step.table_stride = n_pages;
      const auto n_bytes =
          count(kv_page(c.kv, c.n_kv_heads, c.head_dim, kTokens).page_bytes() * n_pages);
      const std::vector<std::byte> empty(n_bytes);
      const RowsView qkv = rows(side, c.n_rows, a.qkv_cols(), 9);
      const RowsView out = rows(side, c.n_rows, a.q_cols(), 10);
      ops.attend(qkv, a, step, {c.kv, c.kv, side.put(empty), side.put(empty), kTokens}, out);
      if (&side == gpu.get()) stream->finish();
      return side.get(out.data, count(out.n_rows * out.n_cols));
    };
    const std::vector<float> want = attend(host, *cpu_ops), got = attend(*gpu, *gpu_ops);
    for (size_t i = 0; i < want.size(); ++i) {
      // Weights of attention that are rounded to halves, and keys to the cache's type.
      ASSERT_NEAR(want[i], got[i], 2e-3f) << c.head_dim << ", " << c.n_rows << " rows, " << i;
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda::test
