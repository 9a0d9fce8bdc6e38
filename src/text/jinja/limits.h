// What a template may use before it is stopped. Templates come with model files from anywhere, so
// none may hang the process or exhaust its memory, whatever it computes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::text::jinja {

struct Limits {
  // Compiling.
  size_t source_bytes = size_t{1} << 20;  // of the template's text
  int nesting = 200;                      // of blocks and expressions inside each other

  // Rendering.
  uint64_t steps = 50'000'000;             // evaluations, and work on long values (kBytesPerStep)
  int depth = 1500;                        // of evaluations inside each other, through macros too
  size_t output_bytes = size_t{64} << 20;  // written, captured blocks and macros included
  size_t value_bytes = size_t{256} << 20;  // of all values made; they are freed at the end
};

// Of output_bytes and value_bytes: a string knows its length in 32 bits.
constexpr size_t kLargestLimit = (size_t{1} << 32) - 1;

// Work on the bytes of a string counts as one step for so many of them.
constexpr size_t kBytesPerStep = 64;

}  // namespace sluice::text::jinja
