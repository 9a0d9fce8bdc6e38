// Ops::delta_net: against the recurrence in float64, and bit for bit against itself: neither the
// division into steps, nor threads, nor other sequences in the step may change a row, and a state
// that was read stays as it is.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "backend/cpu/attend_wide.h"
#include "backend/cpu/delta_rule.h"
#include "backend/ops.h"
#include "base/error.h"
#include "unit/backend/expect.h"
#include "unit/backend/samples.h"

namespace sluice::backend::test {
namespace {

struct NetShape {
  int n_taps = 4;
  int n_key_heads = 2;
  int n_value_heads = 4;
  int head_dim = 16;
  KeyHeads key_heads = KeyHeads::by_neighbours;
  GateColumns gate_columns = GateColumns::apart;
};

constexpr NetShape kNetShapes[] = {
    {},
    {.key_heads = KeyHeads::by_remainder},
    {.gate_columns = GateColumns::by_key_head},
    {.n_key_heads = 3, .n_value_heads = 9, .key_heads = KeyHeads::by_remainder},
    {.n_key_heads = 1, .n_value_heads = 3, .head_dim = 8, .gate_columns = GateColumns::by_key_head},
    {.n_taps = 1, .n_value_heads = 2, .head_dim = 24},
    {.n_taps = 7, .n_key_heads = 1, .n_value_heads = 1, .head_dim = 128},
};

// The weights of a net and what its view borrows.
struct Net {
  explicit Net(const NetShape& s) {
    view = {.n_taps = s.n_taps,
            .n_key_heads = s.n_key_heads,
            .n_value_heads = s.n_value_heads,
            .head_dim = s.head_dim,
            .key_heads = s.key_heads,
            .gate_columns = s.gate_columns};
    conv = random_values(view.conv_cols() * s.n_taps, 31, 0.4f);
    norm = random_norm_weight(s.head_dim, 32);
    for (uint64_t h = 0; h < static_cast<uint64_t>(s.n_value_heads); ++h) {
      decay.push_back(-0.55f + 0.5f * random_signed(random_bits(33, h)));
      bias.push_back(random_signed(random_bits(34, h)));
    }
    view.conv = conv.data();
    view.decay = decay.data();
    view.time_bias = bias.data();
    view.norm = {norm.data(), 1e-6f};
  }
  Net(const Net&) = delete;

  Rows random_in(int64_t n_rows, uint64_t seed) const {
    return Rows::random(n_rows, view.in_cols(), seed);
  }

  std::vector<float> conv, norm, decay, bias;
  DeltaNetView view;
};

// The recurrence, as shared/spec has it.
class Recurrence {
 public:
  explicit Recurrence(const DeltaNetView& net)
      : net_(net), s_(static_cast<size_t>(net.value_cols() * net.head_dim), 0.0) {}

  // How many tokens' errors S holds at most: what enters decays with it, and a key's correction
  // makes nothing longer.
  double n_remembered() const { return n_remembered_; }

  std::vector<double> next(std::span<const float> in) {
    inputs_.emplace_back(in.begin(), in.begin() + net_.conv_cols());
    slowest_ = 0;
    const std::vector<double> c = convolved();
    std::vector<double> out;
    for (int h = 0; h < net_.n_value_heads; ++h) {
      const std::vector<double> o = head(h, c, in);
      double mean = 0;
      for (const double x : o) mean += x * x / net_.head_dim;
      for (int j = 0; j < net_.head_dim; ++j) {
        const double z = in[static_cast<size_t>(net_.conv_cols() + h * net_.head_dim + j)];
        out.push_back(o[static_cast<size_t>(j)] / std::sqrt(mean + net_.norm.eps) *
                      net_.norm.weight[j] * z / (1 + std::exp(-z)));
      }
    }
    n_remembered_ = n_remembered_ * slowest_ + 1;
    return out;
  }

 private:
  std::vector<double> convolved() const {
    std::vector<double> c;
    for (int64_t ch = 0; ch < net_.conv_cols(); ++ch) {
      double sum = 0;
      for (int tap = 0; tap < net_.n_taps; ++tap) {
        const int64_t t = std::ssize(inputs_) - net_.n_taps + tap;
        if (t < 0) continue;
        sum += static_cast<double>(net_.conv[ch * net_.n_taps + tap]) *
               inputs_[static_cast<size_t>(t)][static_cast<size_t>(ch)];
      }
      c.push_back(sum / (1 + std::exp(-sum)));
    }
    return c;
  }

  // A head of c at length 1.
  std::vector<double> unit(const std::vector<double>& c, int64_t first) const {
    std::vector<double> head(c.begin() + first, c.begin() + first + net_.head_dim);
    double square = net_.norm.eps;
    for (const double x : head) square += x * x;
    for (double& x : head) x /= std::sqrt(square);
    return head;
  }

  std::vector<double> head(int h, const std::vector<double>& c, std::span<const float> in) {
    const int dim = net_.head_dim, r = net_.n_value_heads / net_.n_key_heads;
    const int shared = net_.key_heads == KeyHeads::by_neighbours ? h / r : h % net_.n_key_heads;
    const auto q = unit(c, shared * dim), k = unit(c, net_.key_cols() + shared * dim);
    const bool apart = net_.gate_columns == GateColumns::apart;
    const int64_t gates = net_.conv_cols() + net_.value_cols();
    const double b = in[static_cast<size_t>(gates + (apart ? h : h / r * 2 * r + h % r))];
    const double a = in[static_cast<size_t>(
        gates + (apart ? net_.n_value_heads + h : h / r * 2 * r + r + h % r))];
    const double decay =
        std::exp(net_.decay[h] * std::log1p(std::exp(a + static_cast<double>(net_.time_bias[h]))));
    slowest_ = std::max(slowest_, decay);
    std::vector<double> o;
    for (int j = 0; j < dim; ++j) {
      double* const column = s_.data() + (h * dim + j) * dim;
      double seen = 0, sum = 0;
      for (int i = 0; i < dim; ++i) seen += decay * column[i] * k[static_cast<size_t>(i)];
      const double v = c[static_cast<size_t>(2 * net_.key_cols() + h * dim + j)];
      for (int i = 0; i < dim; ++i) {
        column[i] = decay * column[i] + k[static_cast<size_t>(i)] * (v - seen) / (1 + std::exp(-b));
        sum += column[i] * q[static_cast<size_t>(i)] / std::sqrt(dim);
      }
      o.push_back(sum);
    }
    return o;
  }

  const DeltaNetView& net_;
  double slowest_ = 0, n_remembered_ = 0;
  std::vector<double> s_;
  std::vector<std::vector<double>> inputs_;
};

// States of sequences, two for each, which take turns; NaN where nothing was written.
struct NetStates {
  NetStates(const DeltaNetView& net, int n_sequences)
      : stride(net.state_values()),
        values(static_cast<size_t>(2 * n_sequences * stride),
               std::numeric_limits<float>::quiet_NaN()),
        from(static_cast<size_t>(n_sequences), -1) {
    for (int s = 0; s < n_sequences; ++s) to.push_back(2 * s);
  }

  StateLayerView view() {
    StateLayerView view{values.data(), stride, from.data(), to.data()};
    if (updates.empty()) return view;
    view.updates = updates.data();
    view.update_stride = update_stride;
    view.n_places = kPlaces;
    view.max_logged_rows = kLoggedRows;
    return view;
  }
  // Of two sequences at most; tokens of narrow steps leave their updates from now on.
  void log(const DeltaNetView& net) {
    update_stride = net.update_values();
    updates.assign(static_cast<size_t>(2 * kPlaces * update_stride),
                   std::numeric_limits<float>::quiet_NaN());
  }
  void turn(size_t sequence) {
    from[sequence] = to[sequence];
    to[sequence] ^= 1;
  }
  std::span<const float> state(int32_t i) const {
    return std::span(values).subspan(static_cast<size_t>(i * stride), static_cast<size_t>(stride));
  }

  static constexpr int kPlaces = 8, kLoggedRows = 3;
  int64_t stride, update_stride = 0;
  std::vector<float> values, updates;
  std::vector<int32_t> from, to;
};

// One step of these sequences' next rows (their order in the step), two rows of padding behind.
// What each gives is appended to outs[sequence].
void net_step(Ops& ops, const Net& net, NetStates& states, std::span<const Rows> texts,
              std::span<const int32_t> sequences, std::span<std::vector<float>> outs) {
  const auto n_live = static_cast<int32_t>(sequences.size());
  const auto width = static_cast<size_t>(net.view.value_cols());
  std::vector<size_t> done;
  for (const auto& out : outs) done.push_back(out.size() / width);
  Rows in(n_live + 2, net.view.in_cols(), 1.0f), out(n_live + 2, net.view.value_cols());
  for (int32_t r = 0; r < n_live; ++r) {
    const auto s = static_cast<size_t>(sequences[static_cast<size_t>(r)]);
    std::ranges::copy(texts[s].row(static_cast<int64_t>(done[s]++)), in.view().row(r));
  }
  std::vector<int32_t> padded(sequences.begin(), sequences.end());
  padded.resize(sequences.size() + 2, 0);
  std::vector<int32_t> positions(padded.size(), 0);
  for (int32_t r = n_live - 1; r >= 0; --r) {
    const auto s = static_cast<size_t>(padded[static_cast<size_t>(r)]);
    positions[static_cast<size_t>(r)] = static_cast<int32_t>(--done[s]);
  }
  const StepView step{.n_rows = n_live + 2,
                      .n_live = &n_live,
                      .positions = positions.data(),
                      .sequences = padded.data()};
  ops.delta_net(in.view(), net.view, step, states.view(), out.view());
  for (int32_t r = 0; r < n_live; ++r) {
    auto& to = outs[static_cast<size_t>(sequences[static_cast<size_t>(r)])];
    to.insert(to.end(), out.row(r).begin(), out.row(r).end());
  }
  for (const float x : std::span(out.row(n_live).data(), 2 * width)) ASSERT_EQ(x, 0.0f);
  for (size_t s = 0; s < states.to.size(); ++s) {
    if (std::ranges::count(sequences, static_cast<int32_t>(s)) > 0) states.turn(s);
  }
}

struct NetRun {
  std::vector<float> out, state;
};

// One text, `chunk` rows at a time.
// A prompt first where there is one, then so many at a time.
NetRun run_net(const Net& net, const Rows& text, int64_t chunk, int n_threads = 2,
               int64_t n_prompt = 0) {
  ThreadPool pool(n_threads);
  const auto ops = make_cpu_ops(pool);
  NetStates states(net.view, 1);
  std::vector<std::vector<float>> outs(1);
  for (int64_t t = 0, n = n_prompt > 0 ? n_prompt : chunk; t < text.n_rows; t += n, n = chunk) {
    const std::vector<int32_t> rows(static_cast<size_t>(std::min(n, text.n_rows - t)), 0);
    net_step(*ops, net, states, {&text, 1}, rows, outs);
  }
  const auto state = states.state(states.from[0]);
  return {outs[0], {state.begin(), state.end()}};
}

std::string net_name(const NetShape& s) {
  return std::to_string(s.n_value_heads) + " heads over " + std::to_string(s.n_key_heads) + " of " +
         std::to_string(s.head_dim) + ", " + std::to_string(s.n_taps) + " taps";
}

// A row's number is a sum of head_dim products, of values that went through as many before, with
// the errors of as many tokens as S remembers. That does not grow with the text: after a prompt
// and 2,000 decoded tokens it is as near as at the start.
void expect_follows(const NetShape& shape, int64_t n_prompt, int64_t n_tokens) {
  const Net net(shape);
  const Rows text = net.random_in(n_tokens, 41);
  const std::vector<float> got = run_net(net, text, 1, 2, n_prompt).out;
  Recurrence exact(net.view);
  const auto width = static_cast<size_t>(net.view.value_cols());
  for (int64_t t = 0; t < n_tokens; ++t) {
    const std::vector<double> row = exact.next(text.row(t));
    double most = 0;
    for (const double x : row) most = std::max(most, std::abs(x));
    BoundedRow bounded;
    for (const double x : row) {
      bounded.push_back({x, 0x1p-24 * (2 * shape.head_dim + 16) * exact.n_remembered() * most});
    }
    const std::string what = net_name(shape) + ", token " + std::to_string(t);
    expect_within(bounded, std::span(got).subspan(static_cast<size_t>(t) * width, width), what);
    expect_sharp(bounded, 1e-3, what);
  }
}

TEST(DeltaNet, FollowsTheRecurrenceInFloat64) {
  for (const NetShape& shape : kNetShapes) expect_follows(shape, 40, 40);
}

TEST(DeltaNet, DoesNotDriftFromItInTwoThousandTokensBehindAPrompt) {
  expect_follows({.n_key_heads = 1, .n_value_heads = 2, .head_dim = 24}, 600, 2600);
}

// What the loops for AVX-512 give, and leave in S, is what the others do.
TEST(DeltaNet, TheWideRuleGivesTheSameBits) {
  if (!cpu::can_attend_wide()) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const int n_dims : {8, 16, 24, 40, 128}) {
    for (const int n_columns : {4, 8, 32}) {
      for (const int n_tokens : {1, 2, 5}) {
        const int64_t n = n_tokens * int64_t{128};
        const auto q = random_values(n, 50, 0.3f), k = random_values(n, 51, 0.3f),
                   v = random_values(n, 52, 1.0f), before = random_values(32 * 128, 53, 1.0f);
        std::vector<float> got[2];
        for (int wide = 0; wide < 2; ++wide) {
          std::vector<float>& all = got[wide];
          all.assign(static_cast<size_t>(2 * 32 * n_tokens + n_columns * n_dims), 0.0f);
          std::vector<cpu::DeltaToken> tokens;
          for (int t = 0; t < n_tokens; ++t) {
            float* const o = all.data() + 2 * 32 * t;
            tokens.push_back({&q[static_cast<size_t>(128 * t)], &k[static_cast<size_t>(128 * t)],
                              &v[static_cast<size_t>(128 * t)], o, t % 2 ? o + 32 : nullptr,
                              0.9f - 0.1f * static_cast<float>(t), 0.4f});
          }
          const cpu::DeltaColumns s{n_tokens == 2 ? nullptr : before.data(),
                                    all.data() + 2 * 32 * n_tokens, n_dims, n_columns};
          (wide ? cpu::wide_delta_rule : cpu::delta_rule)(tokens.data(), n_tokens, s);
        }
        expect_same_bits(got[0], got[1],
                         cat(n_columns, " columns of ", n_dims, ", ", n_tokens, " tokens"));
      }
    }
  }
}

TEST(DeltaNet, NoDivisionIntoStepsOrThreadsChangesABit) {
  for (const NetShape& shape : kNetShapes) {
    const Net net(shape);
    const Rows text = net.random_in(23, 42);
    const NetRun expected = run_net(net, text, 1);
    for (const int64_t chunk : {2, 3, 7, 23}) {
      for (const int n_threads : {1, 3}) {
        const NetRun got = run_net(net, text, chunk, n_threads);
        const std::string what = net_name(shape) + ", " + std::to_string(chunk) + " at a time";
        expect_same_bits(expected.out, got.out, what);
        expect_same_bits(expected.state, got.state, what + ", the state");
      }
    }
  }
}

TEST(DeltaNet, SequencesInOneStepEqualEachAlone) {
  const Net net({.key_heads = KeyHeads::by_remainder});
  const std::vector<Rows> texts = {net.random_in(9, 43), net.random_in(9, 44),
                                   net.random_in(9, 45)};
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  NetStates states(net.view, 3);
  std::vector<std::vector<float>> outs(3);
  for (const std::vector<int32_t>& rows :
       {std::vector<int32_t>{2, 0, 2, 0, 2}, {1}, {0, 1, 0, 1}, {1, 2}, {0, 0, 0, 0, 0, 2, 2}}) {
    net_step(*ops, net, states, texts, rows, outs);
  }
  for (size_t s = 0; s < 3; ++s) {
    const NetRun alone = run_net(net, texts[s], 1);
    expect_same_bits(std::span(alone.out).first(outs[s].size()), outs[s],
                     "sequence " + std::to_string(s));
  }
}

TEST(DeltaNet, AStateThatWasReadStaysAsItIs) {
  const Net net({});
  const Rows text = net.random_in(6, 46);
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  NetStates states(net.view, 2);
  std::vector<std::vector<float>> outs(2);
  net_step(*ops, net, states, std::vector{text, text}, std::vector<int32_t>{0, 0, 1}, outs);
  const std::vector<float> before = states.values;
  const int32_t read = states.from[0], other = states.from[1];
  net_step(*ops, net, states, std::vector{text, text}, std::vector<int32_t>{0, 0}, outs);
  for (const int32_t i : {read, other, other ^ 1}) {
    const auto first = static_cast<size_t>(i * states.stride);
    expect_same_bits(std::span(before).subspan(first, static_cast<size_t>(states.stride)),
                     states.state(i), "state " + std::to_string(i));
  }
}

// From any of the states before, a state is made again out of the updates of the tokens between.
TEST(DeltaNet, UpdatesLeadToTheStatesThatWereBehindThem) {
  constexpr int32_t kTokens = 12;  // more than there are places
  for (const NetShape& shape : kNetShapes) {
    const Net net(shape);
    const Rows text = net.random_in(kTokens, 47);
    ThreadPool pool(2);
    const auto ops = make_cpu_ops(pool);
    NetStates states(net.view, 2);
    states.log(net.view);
    std::vector<std::vector<float>> outs(2);
    std::vector<std::vector<float>> after(1);  // after[n]: the state behind n tokens
    for (int32_t t = 0; t < kTokens; ++t) {
      net_step(*ops, net, states, std::vector{text, text}, std::vector<int32_t>{1}, outs);
      const auto state = states.state(states.from[1]);
      after.emplace_back(state.begin(), state.end());
    }
    for (int32_t end = kTokens - NetStates::kPlaces + 1; end <= kTokens; ++end) {
      for (int32_t begin = kTokens - NetStates::kPlaces; begin < end; ++begin) {
        std::ranges::copy(after[static_cast<size_t>(begin)], states.values.begin());
        ops->delta_replay(net.view, states.view(), {1, begin, end, 0, 1});
        expect_same_bits(
            after[static_cast<size_t>(end)], states.state(1),
            net_name(shape) + ", " + std::to_string(begin) + " to " + std::to_string(end));
      }
    }
  }
}

TEST(DeltaNet, UpdatesLeadFromTheBeginningAndAreThoseOfNarrowStepsAlone) {
  const Net net({.n_taps = 4, .n_key_heads = 3, .n_value_heads = 9});
  const Rows text = net.random_in(9, 48);
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  NetStates states(net.view, 2);
  states.log(net.view);
  std::vector<std::vector<float>> outs(2);
  const std::vector texts{text, text};
  net_step(*ops, net, states, texts, std::vector<int32_t>{0, 1, 1}, outs);
  const std::vector<float> expected(states.state(states.from[1]).begin(),
                                    states.state(states.from[1]).end());
  const int32_t spare = states.to[1];
  ops->delta_replay(net.view, states.view(), {1, 0, 2, -1, spare});
  expect_same_bits(expected, states.state(spare), "from zeros");
  const std::vector<float> before = states.updates;
  net_step(*ops, net, states, texts, std::vector<int32_t>{1, 1, 1, 1}, outs);
  expect_same_bits(before, states.updates, "a step with four rows");
}

}  // namespace
}  // namespace sluice::backend::test
