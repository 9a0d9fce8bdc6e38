// Which states no short string can tell apart. In a string of up to a thousand characters the
// states after 17 and after 18 of them differ, but not for a token of eight bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar/grammar.h"

namespace sluice::text::grammar {

// For each entry of `n_bytes`, which ascend: by state, the number of its class. States of one class
// treat all strings up to that length the same: where they die, end, or call and return to what.
// Beyond `max_work` table look-ups the remaining classes are the states themselves, which is always
// right.
std::vector<std::vector<uint32_t>> states_alike(const Grammar& grammar,
                                                std::span<const uint32_t> n_bytes, size_t max_work);

}  // namespace sluice::text::grammar
