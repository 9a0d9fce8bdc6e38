// The program under test, as its users meet it: run with arguments, judged by exit code and by what
// stands on its two outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "support/process.h"

namespace sluice::test {

using Args = std::vector<std::string>;

inline Args operator+(Args a, const Args& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Outcome run_sluice(const Args& args, ProcessOptions options = {}) {
  // A failing allocation then reaches the program, as it does without the sanitizers.
  for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    const char* set = std::getenv(name);
    options.environment.emplace_back(
        name, (set ? std::string(set) + ":" : std::string()) + "allocator_may_return_null=1");
  }
  return run_process(Args{SLUICE_BINARY} + args, options);
}

// With a text as its standard input, through a pipe.
inline Outcome run_sluice_on(const std::string& input, const Args& args,
                             ProcessOptions options = {}) {
  std::array<int, 2> ends;
  if (input.size() > 60000 || ::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  if (::write(ends[1], input.data(), input.size()) < 0) std::abort();
  ::close(ends[1]);
  options.in_child = [&] { ::dup2(ends[0], 0); };
  const Outcome outcome = run_sluice(args, options);
  ::close(ends[0]);
  return outcome;
}

inline testing::AssertionResult succeeded(const Outcome& outcome) {
  if (outcome.exit_code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << outcome;
}

// What the program prints, which must succeed.
inline std::string output_of(const Args& args) {
  const Outcome outcome = run_sluice(args);
  EXPECT_TRUE(succeeded(outcome));
  return outcome.out;
}

// How many tokens each answer of a chat had to compute before the first of its own.
inline std::vector<int> prompt_tokens(const Outcome& outcome) {
  std::vector<int> counts;
  static const std::regex kLine(R"(\[(\d+) prompt tokens, )");
  for (std::sregex_iterator it(outcome.err.begin(), outcome.err.end(), kLine), end; it != end;
       ++it) {
    counts.push_back(std::stoi((*it)[1]));
  }
  return counts;
}

// Nothing on stdout, and on stderr one line that begins with `prefix` and holds all parts.
inline testing::AssertionResult ended_with_one_line(const Outcome& outcome, int exit_code,
                                                    const std::string& prefix,
                                                    const std::vector<std::string>& parts) {
  const auto failure = [&](const std::string& why) {
    return testing::AssertionFailure() << why << "\n" << outcome;
  };
  if (outcome.exit_code != exit_code) {
    return failure("expected exit code " + std::to_string(exit_code));
  }
  if (!outcome.out.empty()) return failure("expected nothing on stdout");
  if (std::ranges::count(outcome.err, '\n') != 1 || outcome.err.back() != '\n') {
    return failure("expected exactly one line on stderr");
  }
  if (outcome.err.size() > 1000) return failure("expected a line that people can read");
  if (!outcome.err.starts_with(prefix)) return failure("expected a line that begins " + prefix);
  for (const std::string& part : parts) {
    if (outcome.err.find(part) == std::string::npos) return failure("expected to read: " + part);
  }
  return testing::AssertionSuccess();
}

// A file or a request that the program must turn down.
inline testing::AssertionResult refused(const Outcome& outcome,
                                        const std::vector<std::string>& parts) {
  return ended_with_one_line(outcome, 1, "sluice: error: ", parts);
}

// Flags that make no sense.
inline testing::AssertionResult misused(const Outcome& outcome,
                                        const std::vector<std::string>& parts) {
  return ended_with_one_line(outcome, 2, "sluice: ", parts);
}

}  // namespace sluice::test
