// Which tokens end a generation, and which ids are meant where a file does not say: found by the
// texts that model families use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace sluice::text {

struct Roles {
  std::vector<TokenId> end_of_generation;  // sorted
  // Control tokens that are shown like text all the same: the frame of harmony messages (gpt-oss),
  // which a reader of answers needs to see. Sorted.
  std::vector<TokenId> always_shown;
};

// Fills in missing eot, eom and fim ids. A token that ends a generation, or has one of these roles
// by its text, becomes a control token even if the file calls it something else: some do by
// mistake, and a user's text could then end an answer.
Roles assign_roles(Vocabulary& vocabulary);

}  // namespace sluice::text
