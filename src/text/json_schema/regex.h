// The regular expressions of `pattern`: ECMAScript's, as far as they are regular. Alternatives,
// groups, quantifiers (lazy ones match the same texts), classes, \d \w \s and escapes; ^ and $ at
// the ends of the whole pattern or of its alternatives. Lookaround, back-references, \b and \p are
// refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "text/grammar/rules.h"
#include "text/json_schema/pieces.h"

namespace sluice::text::grammar {

// The inside of a JSON string (without its quotes) whose value has a match of the pattern, anywhere
// unless anchored. `pattern` is valid UTF-8. Throws Error with the position and what is wrong
// there.
ExprId parse_regex(std::string_view pattern, RuleSet& rules, JsonPieces& pieces);

// The pattern for a `format`, anchored; empty for an unknown one. docs/decisions/0004 lists them.
std::string pattern_of_format(std::string_view format);

// All formats there are, for messages.
std::string known_formats();

}  // namespace sluice::text::grammar
