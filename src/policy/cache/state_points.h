// Which states of recurrent layers each text holds, and how it gets back to an earlier position:
// pure bookkeeping of numbered places. A state is written once, by the step that ends there, and
// stays as it is while anybody holds it. A text holds
//   the newest, and the one before its last step;
//   points that texts go back to: the ends of messages, and of the steps of prompts;
//   bases: one or two of its last steps, from which the updates that its tokens left lead to any
//   of the last kRollbackTokens positions without computing the model.
// All but the newest are kept while there is room, and a point of every text stays: see
// give_up_something(). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace sluice::policy {

// A text of narrow steps goes back by so many tokens without computing any. A step with more rows
// of a sequence leaves no updates.
constexpr int kRollbackTokens = 16;
// Updates that each sequence has room for, in turn: what lies behind the older of two bases (less
// than 3 kRollbackTokens), and a step that may fail.
constexpr int kLoggedUpdates = 4 * kRollbackTokens;

// Places for states: for each sequence the newest, the one that a step writes and two bases; and
// points of all texts, which have the places of texts that do not run besides.
constexpr int kKeptStates = 6;
constexpr int n_states(int n_sequences) { return 4 * n_sequences + kKeptStates; }

// What the end of a step is to a text.
enum class StepEnd { nothing, chunk_end, message_end };

class StatePoints {
 public:
  explicit StatePoints(int n_sequences);

  // A state to read, -1 where the text is empty, and one to write.
  struct Places {
    int32_t from = -1, to = -1;
  };
  // Where no place is free, what is missed least is given up.
  Places begin_step(SequenceId sequence);
  // The text now ends at `end`, a point to come back to unless that is nothing. Or it is as it was.
  void end_step(SequenceId sequence, int end, StepEnd what);
  void drop_step(SequenceId sequence);

  // How a text got to a position: `reached` is that or, where nothing leads there, one before it.
  // Where n_updates > 0, state places.to is to be made of places.from by the updates of the
  // n_updates tokens before `reached`.
  struct Way {
    int reached = 0;
    int n_updates = 0;
    Places places;
  };
  Way go_back(SequenceId sequence, int n_tokens);
  // `to` becomes the beginning of `from`, whose updates they are.
  Way fork(SequenceId from, SequenceId to, int n_tokens);

  // The text is replaced by one of n_tokens, whose state comes from elsewhere: to the place that is
  // returned. That is a point to come back to; no updates lead there.
  int32_t replace(SequenceId sequence, int n_tokens);

  // What go_back() would reach.
  int kept_tokens(SequenceId sequence, int n_tokens) const;
  int n_tokens(SequenceId sequence) const { return text(sequence).newest.position; }
  int32_t newest(SequenceId sequence) const { return text(sequence).newest.state; }

 private:
  struct Point {
    int position = 0;
    int32_t state = -1;
    bool ends_message = false;
  };
  using Points = std::vector<Point>;  // ascending
  struct Text {
    Point newest, before;
    Points kept, bases;  // bases: never empty, and of those behind the first all updates are there
    int32_t written = -1;
    int64_t last_step = 0;
  };

  Text& text(SequenceId sequence) { return texts_[static_cast<size_t>(sequence.value)]; }
  const Text& text(SequenceId sequence) const {
    return texts_[static_cast<size_t>(sequence.value)];
  }
  int32_t take();
  Point hold(Point point);
  void let_go(Point& point);
  void cut(Points& points, int n_tokens);
  void keep(Text& text, bool ends_message);
  void add_base(Text& text, int n_rows);
  Way arrive(Text& text, Point start, int n_tokens);
  void give_up_something();
  // Ends of so many newest messages and chunks of a text, and states that more hold.
  struct Spared {
    int n_messages, n_chunks, n_holders = 1;
  };
  bool give_up_a_point(const Spared& spared);
  bool give_up_a_way_back(bool of_any);
  static Point nearest(const Text& text, int n_tokens);

  std::vector<int32_t> free_;
  std::vector<int> n_holders_;  // by state
  std::vector<Text> texts_;     // by sequence
  int64_t n_steps_ = 0;         // of all texts
};

}  // namespace sluice::policy
