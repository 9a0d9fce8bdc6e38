// Rules to a Grammar: automata for every rule, made deterministic, with what the empty string and
// dead ends would complicate taken out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text/grammar/grammar.h"
#include "text/grammar/rules.h"

namespace sluice::text::grammar {

// Throws Error if a rule refers to itself before any text, if nothing matches the root, or beyond a
// limit of the rule set. Every rule that is called must be defined.
Grammar compile(const RuleSet& rules, RuleId root);

}  // namespace sluice::text::grammar
