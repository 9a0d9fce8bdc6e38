// See vocabulary.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include <limits>
#include <utility>

#include "base/error.h"

namespace sluice::text {
namespace {

[[noreturn]] void refuse(const TokenizerData& data, const std::string& text) {
  throw Error(Errc::bad_file, cat(data.origin, ": ", text));
}

void check_id(const TokenizerData& data, const char* name, std::optional<TokenId> id) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < data.tokens.size())) return;
  refuse(data, cat("the ", name, " token is ", *id, "; expected an id below the ",
                   data.tokens.size(), " tokens of the vocabulary"));
}

void check_ids(const TokenizerData& data) {
  const SpecialIds& ids = data.ids;
  const std::pair<const char*, std::optional<TokenId>> named[] = {
      {"bos", ids.bos},
      {"eos", ids.eos},
      {"eot", ids.eot},
      {"eom", ids.eom},
      {"unknown", ids.unknown},
      {"padding", ids.padding},
      {"fim prefix", ids.fim_prefix},
      {"fim suffix", ids.fim_suffix},
      {"fim middle", ids.fim_middle},
      {"fim pad", ids.fim_pad},
      {"fim repo", ids.fim_repo},
      {"fim separator", ids.fim_separator},
  };
  for (const auto& [name, id] : named) check_id(data, name, id);
  for (const TokenId id : data.suppress_tokens) check_id(data, "suppressed", id);
}

}  // namespace

Vocabulary::Vocabulary(TokenizerData data) : data_(std::move(data)) {
  const size_t n = data_.tokens.size();
  constexpr auto kMax = static_cast<size_t>(std::numeric_limits<TokenId>::max()) / 4;
  if (n == 0 || n > kMax)
    refuse(data_, cat("a vocabulary of ", n, " tokens; expected 1 to ", kMax));
  if (data_.kinds.empty()) data_.kinds.assign(n, TokenKind::normal);
  if (data_.kinds.size() != n) {
    refuse(data_,
           cat(data_.kinds.size(), " token types for ", n, " tokens; expected one for each"));
  }
  if (!data_.scores.empty() && data_.scores.size() != n) {
    refuse(data_, cat(data_.scores.size(), " scores for ", n, " tokens; expected one for each"));
  }
  check_ids(data_);
  by_text_.reserve(n);
  for (size_t i = 0; i < n; ++i) by_text_[data_.tokens[i]] = static_cast<TokenId>(i);
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return std::nullopt;
  return found->second;
}

std::optional<TokenId> Vocabulary::find_plain(std::string_view text) const {
  const std::optional<TokenId> id = find(text);
  if (!id) return std::nullopt;
  const TokenKind k = kind(*id);
  if (k == TokenKind::normal || k == TokenKind::user_defined) return id;
  return std::nullopt;
}

}  // namespace sluice::text
