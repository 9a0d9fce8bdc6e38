// How much a grammar may cost. A grammar beyond a limit is refused with the limit's name; one
// within them compiles in bounded time and memory, whoever wrote it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/error.h"

namespace sluice::text {

struct GrammarLimits {
  size_t source_bytes = 1 << 20;  // of the GBNF or schema text
  int depth = 64;                 // of groups in groups, of schemas in schemas
  size_t rules = 1 << 14;
  size_t parts = 1 << 18;         // expressions: literals, classes, groups
  int repetition = 1 << 16;       // the largest count in {m,n}, minLength, maxItems and the like
  size_t nodes = 1 << 20;         // after writing out repetitions
  size_t states = 1 << 17;        // after making the automata deterministic
  size_t work = size_t{1} << 25;  // steps of making them deterministic
};

namespace grammar {

// What is left of the limits while one grammar is compiled. The limits outlive it.
class Budget {
 public:
  explicit Budget(const GrammarLimits& limits) : limits_(limits) {}
  const GrammarLimits& limits() const { return limits_; }

  void spend(size_t steps) {
    work_ += steps;
    if (work_ > limits_.work) {
      throw Error(Errc::bad_request, cat("the grammar needs more than ", limits_.work,
                                         " steps to compile, which is the limit; use smaller "
                                         "counts or fewer choices"));
    }
  }

 private:
  const GrammarLimits& limits_;
  size_t work_ = 0;
};

}  // namespace grammar
}  // namespace sluice::text
