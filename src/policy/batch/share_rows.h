// Which texts get rows in the next step. Every text that goes on token by token gets its row; what
// is left of the step goes to prompts, the one that has waited longest first. While others wait for
// their next token, prompts get less than a whole step, so that the wait stays short.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::policy {

// A text in the making.
struct BatchText {
  int n_pending = 0;  // tokens that are known and not computed
  // Of a prompt, or of a text that is computed again after a pause; else the newest token.
  bool is_prompt = false;
  // Prompt rows end at the latest here: where a point to go back to is kept. 0: anywhere.
  int n_to_point = 0;
  int64_t last_step = 0;   // in which it had rows; 0: none yet
  bool must_wait = false;  // for another text that is computing what both begin with
};

struct RowShare {
  int text = 0;  // by its place among the texts
  int n_rows = 0;
  friend bool operator==(const RowShare&, const RowShare&) = default;
};

// Rows of prompts in a step of at most max_rows, where so many texts wait for their next token.
int prompt_rows(int max_rows, int n_waiting);

// Texts are in the order of their arrival, and no more than max_rows. Rows of decoding come first,
// then those of prompts. At least one text gets rows, unless all must wait.
std::vector<RowShare> share_rows(std::span<const BatchText> texts, int max_rows);

}  // namespace sluice::policy
