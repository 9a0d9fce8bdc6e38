// What a server answered to a request for a part of a file, before the part itself; whether that
// is what was asked for; and how long to wait before it is asked again. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hub/ranges.h"

namespace sluice::hub {

struct AnswerHead {
  int status = 0;
  std::string content_range;  // "bytes 0-99/1000"; empty: none
  std::string etag;
  std::string linked_etag;  // the hub's own: the SHA-256 of a large file
  std::string next_page;    // address of the rest of a listing

  // Takes in a line of the answer. A status line begins a new answer, after a redirect; what the
  // hub said about the file stays.
  void add_line(std::string_view line);
};

struct WantedPart {
  Range range;
  uint64_t n_bytes = 0;  // of the whole file
  std::string sha256;    // of the whole file; empty: not known
  std::string etag;      // of the parts before; empty: there were none
};

struct Judgement {
  enum class Advice { take, again, give_up };
  Advice advice = Advice::take;
  std::string text = {};  // what was wrong
};

Judgement judge(const AnswerHead& head, const WantedPart& wanted);
// Of an answer's status alone, for a request without a range.
Judgement judge_status(int status);

// "bytes 0-99/1000" -> {{0, 100}, 1000}; an unknown length ("*") is 0.
struct ContentRange {
  Range range;
  uint64_t n_bytes = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view text);

// Seconds until the next attempt after so many failures in a row (1 or more): 0.25, 0.5, 1 ... 30,
// or what the server asked for.
double wait_seconds(int n_failures, double retry_after);

// The longest that a server may ask to wait.
inline constexpr double kMaxRetryAfter = 600.0;

}  // namespace sluice::hub
