// One regular expression that cuts text into pieces, with Unicode's categories (PCRE2, compiled to
// machine code where the system allows that).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

// Where one match at a time is noted; for any number of expressions, one after another.
class SplitScratch {
 public:
  SplitScratch();

 private:
  friend class SplitRegex;
  struct MatchDeleter {
    void operator()(void* match_data) const;
  };
  struct ContextDeleter {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, MatchDeleter> match_data_;  // pcre2_match_data
  std::unique_ptr<void, ContextDeleter> context_;   // pcre2_match_context
};

// Move-only. Safe to use from several threads, each with its own SplitScratch.
class SplitRegex {
 public:
  // `pattern` is ours, never a user's: a mistake in it stops at a CHECK. \s and \S mean Unicode's
  // White_Space property, as in the engines the patterns were written for. (PCRE2's own \s also
  // takes U+180E.)
  explicit SplitRegex(std::string_view pattern);

  // Appends the pieces of `text`, which must be valid UTF-8: every match, and every stretch between
  // matches. They lie in `text`, follow each other without a gap, and none is empty. The expression
  // sees `text` alone, not what stands around it in memory.
  void split(std::string_view text, SplitScratch& scratch,
             std::vector<std::string_view>& pieces) const;

 private:
  struct Deleter {
    void operator()(void* code) const;
  };
  std::unique_ptr<void, Deleter> code_;  // pcre2_code
};

}  // namespace sluice::text
