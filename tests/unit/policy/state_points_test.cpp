// Which recurrent states texts hold: any sequence of steps, failures, forks and ways back ends in
// the state of the text's own tokens, and the last positions are always reached by updates.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/state_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::policy::test {
namespace {

// States and updates as the tokens that made them: a state is a text, an update a token at its
// position.
class Machine {
 public:
  explicit Machine(int n_sequences)
      : points_(n_sequences),
        states_(static_cast<size_t>(n_states(n_sequences))),
        texts_(static_cast<size_t>(n_sequences)),
        reach_(texts_.size(), 0),
        last_step_(texts_.size(), 0),
        log_(texts_.size(), std::vector<Update>(kLoggedUpdates)) {}

  void step(int s, int n_rows, StepEnd what, bool fails = false) {
    last_step_[index(s)] = ++n_steps_;
    const auto [from, to] = points_.begin_step(SequenceId(s));
    Tokens state = read(from);
    ASSERT_EQ(state, text(s));
    for (int i = 0; i < n_rows; ++i) {
      const auto position = static_cast<int>(state.size());
      state.push_back(next_token_++);
      if (n_rows <= kRollbackTokens) {
        log_[index(s)][static_cast<size_t>(position % kLoggedUpdates)] = {position, state.back()};
      }
    }
    states_[index(to)] = state;
    if (fails) return points_.drop_step(SequenceId(s));
    points_.end_step(SequenceId(s), static_cast<int>(state.size()), what);
    int& way = reach_[index(s)];
    way = n_rows > kRollbackTokens ? 0 : std::min(kRollbackTokens, way + n_rows);
    text(s) = state;
  }

  void go_back(int s, int n_tokens) {
    const int promised = points_.kept_tokens(SequenceId(s), n_tokens);
    const auto n_left = static_cast<int>(text(s).size()) - n_tokens;
    if (n_left <= reach_[index(s)] && runs(s)) {
      ASSERT_EQ(promised, n_tokens);
    }
    reach_[index(s)] = std::max(0, reach_[index(s)] - n_left);
    const StatePoints::Way way = points_.go_back(SequenceId(s), n_tokens);
    ASSERT_EQ(way.reached, promised);
    arrive(s, s, way);
  }

  void fork(int s, int to, int n_tokens) {
    arrive(s, to, points_.fork(SequenceId(s), SequenceId(to), n_tokens));
    reach_[index(to)] = 0;
  }

  int n_tokens(int s) const { return static_cast<int>(texts_[index(s)].size()); }
  StatePoints& points() { return points_; }

 private:
  using Tokens = std::vector<int>;
  struct Update {
    int position = -1, token = -1;
  };

  static size_t index(int i) { return static_cast<size_t>(i); }
  Tokens& text(int s) { return texts_[index(s)]; }
  // What does not run may have given up the way back by updates.
  bool runs(int s) const { return n_steps_ - last_step_[index(s)] < std::ssize(texts_); }
  Tokens read(int32_t state) const { return state < 0 ? Tokens{} : states_[index(state)]; }

  void arrive(int s, int to, const StatePoints::Way& way) {
    Tokens expected(text(s).begin(), text(s).begin() + way.reached);
    if (way.n_updates > 0) {
      Tokens made = read(way.places.from);
      ASSERT_EQ(static_cast<int>(made.size()), way.reached - way.n_updates);
      for (int position = way.reached - way.n_updates; position < way.reached; ++position) {
        const Update& update = log_[index(s)][static_cast<size_t>(position % kLoggedUpdates)];
        ASSERT_EQ(update.position, position);
        made.push_back(update.token);
      }
      ASSERT_EQ(made, expected);
      states_[index(way.places.to)] = made;
    }
    text(to) = expected;
  }

  StatePoints points_;
  std::vector<Tokens> states_, texts_;
  std::vector<int> reach_;      // how far back updates must lead, by sequence
  std::vector<int> last_step_;  // by sequence
  std::vector<std::vector<Update>> log_;
  int n_steps_ = 0;
  int next_token_ = 0;
};

TEST(StatePoints, AnyLifeOfTextsEndsInTheirOwnStates) {
  for (const int n_sequences : {1, 2, 5}) {
    Machine machine(n_sequences);
    std::mt19937 random(static_cast<uint32_t>(n_sequences));
    const auto up_to = [&](int n) {
      return static_cast<int>(random() % (static_cast<unsigned>(n) + 1));
    };
    for (int i = 0; i < 4000 && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << n_sequences << " sequences, move " << i);
      const int s = up_to(n_sequences - 1), n = machine.n_tokens(s), what = up_to(99);
      if (what < 60) {
        const bool is_kept = up_to(9) == 0;
        machine.step(s, 1 + (what < 40 ? 0 : up_to(15)),
                     is_kept ? StepEnd::chunk_end : StepEnd::nothing, up_to(9) == 0);
      } else if (what < 70) {
        const bool is_chunk = up_to(1) == 0;
        machine.step(s, 1 + up_to(60), is_chunk ? StepEnd::chunk_end : StepEnd::message_end,
                     up_to(5) == 0);
      } else if (what < 90) {
        machine.go_back(s, std::max(0, n - up_to(kRollbackTokens)));
      } else if (what < 95 || n_sequences == 1) {
        machine.go_back(s, up_to(n));
      } else {
        machine.fork(s, (s + 1) % n_sequences, up_to(n));
      }
      for (int k = 0; k < n_sequences; ++k) {
        ASSERT_EQ(machine.points().n_tokens(SequenceId(k)), machine.n_tokens(k));
      }
    }
  }
}

// One base would do until a text has gone on from it by less than what it may go back.
TEST(StatePoints, EveryOneOfTheLastPositionsOfAnAnswerIsReached) {
  Machine machine(1);
  machine.step(0, 100, StepEnd::message_end);
  for (int n = 101; n < 400; ++n) {
    machine.step(0, 1, StepEnd::nothing);
    for (int back = 0; back <= kRollbackTokens; ++back) {
      const int to = std::max(100, n - back);
      ASSERT_EQ(machine.points().kept_tokens({}, to), to) << "at " << n;
    }
  }
  EXPECT_EQ(machine.points().kept_tokens({}, 340), 100) << "what lies further back is not there";
}

TEST(StatePoints, PointsGoWhereTheirNeighboursAreNear) {
  Machine machine(1);
  for (const int n : {100, 1, 1, 1, 100, 100, 100, 100, 100, 100}) {
    machine.step(0, n, StepEnd::message_end);
  }
  for (const int newest : {703, 603, 503}) {
    EXPECT_EQ(machine.points().kept_tokens({}, newest), newest);
  }
  int widest = 0;
  for (int n = 1; n <= 703; ++n) {
    widest = std::max(widest, n - machine.points().kept_tokens({}, n));
  }
  EXPECT_LE(widest, 200);
}

// A prompt of two chunks and the beginning of an answer, and then the answer.
void ask(Machine& machine, int s) {
  machine.step(s, 40, StepEnd::chunk_end);
  machine.step(s, 60, StepEnd::message_end);
  machine.step(s, 5, StepEnd::chunk_end);
}

void answer(Machine& machine, int s) {
  for (int i = 0; i < 40; ++i) machine.step(s, 1, StepEnd::nothing);
}

TEST(StatePoints, EveryTextKeepsAPointOfItsOwn) {
  for (const int n_texts : {2, 10, 40}) {
    Machine one_by_one(n_texts), together(n_texts);
    for (int s = 0; s < n_texts; ++s) {
      ask(one_by_one, s);
      answer(one_by_one, s);
    }
    for (int s = 0; s < n_texts; ++s) ask(together, s);
    for (int i = 0; i < 40; ++i) {
      for (int s = 0; s < n_texts; ++s) together.step(s, 1, StepEnd::nothing);
    }
    for (int s = 0; s < n_texts; ++s) {
      SCOPED_TRACE(testing::Message() << "text " << s << " of " << n_texts);
      EXPECT_EQ(one_by_one.points().kept_tokens(SequenceId(s), 104), 100);
      EXPECT_EQ(together.points().kept_tokens(SequenceId(s), 104), 100);
    }
  }
}

// Where one text is much longer than the others, it gives up its points before they do.
TEST(StatePoints, ALongTextLeavesTheOthersTheirLastMessages) {
  constexpr int kTexts = 10;
  Machine machine(kTexts);
  for (int s = 0; s < kTexts; ++s) {
    ask(machine, s);
    answer(machine, s);
    machine.step(s, 30, StepEnd::message_end);
  }
  for (int i = 0; i < 30; ++i) machine.step(0, 500, StepEnd::chunk_end);
  for (int i = 0; i < 30; ++i) machine.step(0, 500, StepEnd::message_end);
  for (int s = 1; s < kTexts; ++s) {
    EXPECT_EQ(machine.points().kept_tokens(SequenceId(s), 175), 175) << "text " << s;
    EXPECT_GE(machine.points().kept_tokens(SequenceId(s), 174), 100) << "text " << s;
  }
}

TEST(StatePoints, ARunningTextGoesBackByUpdatesAsLongAsOthersHaveSpareStates) {
  constexpr int kTexts = 10;
  Machine machine(kTexts);
  for (int s = 0; s < kTexts; ++s) {
    ask(machine, s);
    answer(machine, s);
  }
  for (int n = 146; n < 200; ++n) {
    machine.step(0, 1, StepEnd::nothing);
    for (int back = 0; back <= kRollbackTokens; ++back) {
      const int to = std::max(145, n - back);
      ASSERT_EQ(machine.points().kept_tokens({}, to), to) << "at " << n;
    }
  }
}

}  // namespace
}  // namespace sluice::policy::test
