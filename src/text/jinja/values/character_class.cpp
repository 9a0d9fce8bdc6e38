// The part of unicode.h that needs Unicode's categories, which PCRE2 knows.
// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "base/check.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

// One fixed pattern of ours, compiled once; matching needs no more than a linear scan.
class Pattern {
 public:
  explicit Pattern(const char* text) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    CHECK(code_ != nullptr);
  }

  // The bytes of the match at or behind `start`: where it ends, or 0 where there is none.
  size_t match_end(std::string_view text, size_t start) const {
    const std::unique_ptr<pcre2_match_data, MatchDeleter> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const int n = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                              start, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    CHECK(n > 0 || n == PCRE2_ERROR_NOMATCH);
    return n > 0 ? pcre2_get_ovector_pointer(match.get())[1] : 0;
  }

 private:
  struct CodeDeleter {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct MatchDeleter {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, CodeDeleter> code_;
};

const Pattern& pattern_of(CharacterClass wanted) {
  // Possessive, so that nothing is ever tried twice.
  static const Pattern letters("^\\p{L}++\\z");
  static const Pattern digits("^\\p{Nd}++\\z");
  static const Pattern alphanumerics("^[\\p{L}\\p{N}]++\\z");
  static const Pattern unprintables("^[\\p{C}\\p{Z}]++\\z");
  switch (wanted) {
    case CharacterClass::letter:
      return letters;
    case CharacterClass::digit:
      return digits;
    case CharacterClass::alphanumeric:
      return alphanumerics;
    case CharacterClass::unprintable:
      return unprintables;
  }
  return letters;
}

}  // namespace

bool consists_of(CharacterClass wanted, std::string_view text) {
  return !text.empty() && pattern_of(wanted).match_end(text, 0) > 0;
}

size_t n_words(std::string_view text) {
  if (text.empty()) return 0;
  static const Pattern word("\\w++");
  size_t n = 0;
  for (size_t end = word.match_end(text, 0); end > 0; end = word.match_end(text, end)) ++n;
  return n;
}

}  // namespace sluice::text::jinja
