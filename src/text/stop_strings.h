// Texts that end an answer. A text arrives in pieces, so what might be the beginning of one is held
// back until it is clear.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

class StopStrings {
 public:
  // Empty strings are left out.
  explicit StopStrings(std::vector<std::string> stops);

  // The next piece of the answer; returns what can be shown now. After a hit nothing more comes.
  // All of it, put together, is the same however the text was cut up.
  std::string push(std::string_view piece);
  // The answer is over: what was still held back.
  std::string finish();
  // Whether a stop string was found; it and all behind it were left out.
  bool hit() const { return hit_; }
  // Which one that was.
  const std::string& found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string found_;
  bool hit_ = false;
};

}  // namespace sluice::text
