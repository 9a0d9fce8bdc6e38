// Which rules are better copied into their callers than called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "text/grammar/rules.h"

namespace sluice::text::grammar {

// By rule. Small rules without calls of their own (white space, digits, a few words) become part of
// their callers, where they cost nothing. Rules with large character classes (the inside of
// strings) stay apart, so that what is learned about their states serves all places that call them.
std::vector<bool> rules_to_inline(const RuleSet& rules);

}  // namespace sluice::text::grammar
