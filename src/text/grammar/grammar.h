// A compiled grammar: deterministic automata over bytes, one for each rule, which may call each
// other. Immutable, so that any number of matchers on any threads can share one. It knows no
// tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::text {

namespace grammar {
class GrammarMaker;
}  // namespace grammar

class Grammar {
 public:
  using State = uint32_t;
  // No successor. Every other state can be continued to a complete match.
  static constexpr State kDead = 0;

  // A call hands over to another rule's automaton, and returns to `back` where that one accepts.
  // The callee consumes at least one byte: what else a rule that matches the empty string does is
  // part of the caller.
  struct Call {
    State entry = kDead;
    State back = kDead;
    uint32_t rule = 0;
  };

  // The state before the first byte. It accepts if the empty string is a match.
  State begin() const { return begin_; }

  // What a byte does: the next state and, in the highest bit, whether the byte can begin a call
  // as well.
  struct Move {
    uint32_t bits = 0;
    State to() const { return bits & 0x7fffffff; }
    bool may_call() const { return (bits & 0x80000000) != 0; }
  };
  Move move(State state, uint8_t byte) const {
    return table_[state * n_classes_ + class_of_[byte]];
  }
  // All moves of a state, by byte class.
  std::span<const Move> moves(State state) const {
    return std::span(table_).subspan(state * n_classes_, n_classes_);
  }
  std::span<const Call> calls(State state) const {
    return std::span(calls_).subspan(first_call_[state],
                                     first_call_[state + 1] - first_call_[state]);
  }
  // The state's rule may end here.
  bool accepts(State state) const { return (flags_[state] & kAccepts) != 0; }
  // An end and nothing behind it.
  bool only_accepts(State state) const { return flags_[state] == kAccepts; }
  // Whether a match of the rule can begin with the byte.
  bool can_begin(uint32_t rule, uint8_t byte) const { return first_bytes_[rule].test(byte); }

  size_t n_states() const { return flags_.size(); }
  size_t n_rules() const { return first_bytes_.size(); }

 private:
  friend class grammar::GrammarMaker;
  Grammar() = default;

  enum Flags : uint8_t { kAccepts = 1, kCalls = 2, kMoves = 4 };

  std::array<uint8_t, 256> class_of_{};
  size_t n_classes_ = 1;
  std::vector<Move> table_;  // [n_states, n_classes]
  std::vector<uint8_t> flags_;
  std::vector<uint32_t> first_call_;  // [n_states + 1], into calls_
  std::vector<Call> calls_;
  std::vector<std::bitset<256>> first_bytes_;  // by rule
  State begin_ = kDead;
};

}  // namespace sluice::text
