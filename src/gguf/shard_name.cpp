// See shard_name.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/shard_name.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/error.h"

namespace sluice::gguf {
namespace {

constexpr std::string_view kPattern = "-#####-of-#####.gguf";
constexpr size_t kDigits = 5;

std::string five_digits(int64_t value) {
  const std::string digits = std::to_string(value);
  CHECK(value >= 0 && digits.size() <= kDigits);
  return std::string(kDigits - digits.size(), '0') + digits;
}

int64_t number_at(std::string_view text, size_t pos) {
  int64_t value = 0;
  std::from_chars(text.data() + pos, text.data() + pos + kDigits, value);
  return value;
}

}  // namespace

std::string ShardName::path() const {
  return cat(prefix, "-", five_digits(number), "-of-", five_digits(count), ".gguf");
}

std::optional<ShardName> parse_shard_name(std::string_view path) {
  if (path.size() <= kPattern.size()) return std::nullopt;
  const std::string_view prefix = path.substr(0, path.size() - kPattern.size());
  const std::string_view suffix = path.substr(prefix.size());
  const bool fits = std::ranges::equal(kPattern, suffix, [](char pattern, char c) {
    return pattern == '#' ? c >= '0' && c <= '9' : c == pattern;
  });
  if (!fits) return std::nullopt;
  return ShardName{std::string(prefix), number_at(suffix, kPattern.find('#')),
                   number_at(suffix, kPattern.rfind('#') + 1 - kDigits)};
}

}  // namespace sluice::gguf
