// GBNF, the grammar notation of llama.cpp:
//   root ::= "yes" | "no" | number      # a comment
//   number ::= [1-9] [0-9]{0,5} ("." [0-9]+)?
// Characters are Unicode code points. Newlines end a rule, except inside parentheses, after ::= and
// around |.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "text/grammar/grammar.h"
#include "text/grammar/limits.h"

namespace sluice::text {

// The language of the rule `root`. Throws Error (bad_request) with line and column where the text
// is no GBNF, and with the names of rules where one is missing, or refers to itself before any
// text.
Grammar compile_gbnf(std::string_view text, const GrammarLimits& limits = {});

}  // namespace sluice::text
