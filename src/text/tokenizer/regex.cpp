// See regex.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex.h"

#include <cstdint>
#include <limits>
#include <new>

#include "base/check.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace sluice::text {
namespace {

// \s and \S of a pattern, which may stand within brackets too, as the property they are to mean.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char escaped = c == '\\' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (escaped == 's') {
      out += "\\p{White_Space}";
    } else if (escaped == 'S') {
      out += "\\P{White_Space}";
    } else {
      out += c;
      if (escaped != '\0') out += escaped;
    }
    if (escaped != '\0') ++i;
  }
  return out;
}

}  // namespace

void SplitScratch::MatchDeleter::operator()(void* match_data) const {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match_data));
}

void SplitScratch::ContextDeleter::operator()(void* context) const {
  pcre2_match_context_free(static_cast<pcre2_match_context*>(context));
}

SplitScratch::SplitScratch() : match_data_(pcre2_match_data_create(1, nullptr)) {
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  context_.reset(context);
  if (!match_data_ || !context_) throw std::bad_alloc();
  // The interpreter counts its steps back; a long run may take more of them than the usual limit,
  // and still no more than a few for each byte, because no pattern of ours nests repetitions.
  constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
  pcre2_set_match_limit(context, kNoLimit);
  pcre2_set_depth_limit(context, kNoLimit);
  pcre2_set_heap_limit(context, kNoLimit);
}

void SplitRegex::Deleter::operator()(void* code) const {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

SplitRegex::SplitRegex(std::string_view pattern) {
  const std::string unicode = with_unicode_spaces(pattern);
  int error = 0;
  PCRE2_SIZE error_at = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(unicode.data()), unicode.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &error_at, nullptr);
  CHECK(code != nullptr);
  code_.reset(code);
  // Where machine code is refused (no writable and executable pages), pcre2_match() interprets: the
  // same pieces, 10 times as slowly.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

void SplitRegex::split(std::string_view text, SplitScratch& scratch,
                       std::vector<std::string_view>& pieces) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  auto* match_data = static_cast<pcre2_match_data*>(scratch.match_data_.get());
  auto* context = static_cast<pcre2_match_context*>(scratch.context_.get());
  size_t at = 0;
  while (at < text.size()) {
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, match_data, context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    CHECK(found >= 0);
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match_data);
    CHECK(ends[1] > ends[0]);  // no pattern of ours matches nothing
    if (ends[0] > at) pieces.push_back(text.substr(at, ends[0] - at));
    pieces.push_back(text.substr(ends[0], ends[1] - ends[0]));
    at = ends[1];
  }
  if (at < text.size()) pieces.push_back(text.substr(at));
}

}  // namespace sluice::text
