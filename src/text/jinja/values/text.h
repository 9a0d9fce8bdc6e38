// Work on strings that filters and methods share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// Python's str.replace(), at most `n_most` times.
Value replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                   std::string_view to, size_t n_most = kNoLimit);

// Less the characters of `characters` at one or both ends.
enum class Side { left, right, both };
std::string_view strip(std::string_view text, std::string_view characters, Side side);
std::string_view strip(std::string_view text, Side side);  // white space

// Where `part` begins for the last time, or npos; find_text() is in operators.h.
size_t find_last_text(std::string_view text, std::string_view part);

// Lines without their ends, or with them.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

std::string capitalized(std::string_view text);

// With `fill`, a character, on one or both sides: `width` characters at least.
Value padded(Runtime& runtime, std::string_view text, Side filled, int64_t width,
             std::string_view fill);

}  // namespace sluice::text::jinja
