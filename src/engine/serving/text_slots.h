// The sequences of a driver: those that requests work on, and those whose texts are kept for later
// requests that begin like them. A new text takes over a kept one of which nothing is lost but an
// answer: a follow-up that one, so that it drives no other text out. Else it forks the kept one and
// shares its KV pages. Where pages are short, the kept text that was used least recently loses its
// end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/step/step_driver.h"

namespace sluice::engine {

// How many tokens two texts have in common at their beginning.
int common_tokens(std::span<const TokenId> a, std::span<const TokenId> b);

class TextSlots {
 public:
  // The driver outlives it, and holds nothing yet.
  TextSlots(StepDriver& driver, int n_slots);

  // What is computed of these tokens in any slot but `skip`; at least the last one is left out,
  // whose logits nobody has.
  struct Found {
    SequenceId slot{-1};
    int n_tokens = 0;  // that it can go back to without computing any
    int n_common = 0;
  };
  Found find(std::span<const TokenId> tokens, SequenceId skip = SequenceId(-1)) const;

  // A slot that holds as much of the text as was found. One must be free: not taken.
  Found take(std::span<const TokenId> tokens);
  // One that holds nothing, for a text that comes from elsewhere. The same must be free.
  SequenceId take_empty();
  // Whether a slot holds all of these tokens and what is needed to go on behind them; this counts
  // as a use of it.
  bool holds(std::span<const TokenId> tokens);
  // Replaces what a taken slot holds by what others have computed of its text meanwhile, where that
  // is more by a page. Returns how much it holds then.
  int catch_up(SequenceId slot, std::span<const TokenId> tokens);
  // A step has computed these tokens.
  void append(SequenceId slot, std::span<const TokenId> tokens);
  // No longer taken; its text is kept, or forgotten. Its first n_asked tokens are the request's
  // messages, what follows is the answer.
  void keep(SequenceId slot, int n_asked);
  void forget(SequenceId slot);

  // Gives up the last page of a kept text; false where there are none. Of `but` only where there is
  // no other.
  bool give_up_page(SequenceId but = SequenceId(-1));
  int n_kept() const;

 private:
  struct Slot {
    std::vector<TokenId> text;  // computed
    int n_asked = 0;
    bool is_taken = false;
    uint64_t last_use = 0;
  };
  Slot& at(SequenceId slot) { return slots_[static_cast<size_t>(slot.value)]; }
  const Slot& at(SequenceId slot) const { return slots_[static_cast<size_t>(slot.value)]; }
  SequenceId free_slot(SequenceId but) const;
  bool takes_over(const Found& found) const;
  void fork(const Found& from, SequenceId to);
  void cut(SequenceId slot, int n_tokens);

  StepDriver& driver_;
  std::vector<Slot> slots_;
  uint64_t n_uses_ = 0;
};

}  // namespace sluice::engine
