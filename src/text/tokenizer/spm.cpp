// See spm.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/spm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Longer tokens are never made by merging: trying every way to make one costs the square of its
// length, and a file must not be able to ask for much of that. Real ones have less than 100 bytes.
constexpr size_t kLongestMerged = 1024;

// The first character of a text, or its first byte where that is not UTF-8.
size_t first_length(std::string_view text) {
  const Utf8Unit unit = next_utf8(text);
  return unit.state == Utf8State::complete ? unit.n_bytes : 1;
}

// The place of each score in descending order; equal scores share one.
std::vector<int32_t> ranks_of(const std::vector<float>& scores) {
  std::vector<float> order = scores;
  std::ranges::sort(order, std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<int32_t> ranks;
  ranks.reserve(scores.size());
  for (const float score : scores) {
    const auto place = std::ranges::lower_bound(order, score, std::greater<>());
    ranks.push_back(static_cast<int32_t>(place - order.begin()));
  }
  return ranks;
}

void check_scores(const TokenizerData& data) {
  if (data.scores.empty()) {
    throw Error(Errc::bad_file, cat(data.origin,
                                    ": a vocabulary of type 'llama' without scores; "
                                    "expected one for each token"));
  }
  const auto bad = std::ranges::find_if(data.scores, [](float s) { return std::isnan(s); });
  if (bad != data.scores.end()) {
    throw Error(Errc::bad_file, cat(data.origin, ": the score of token ", bad - data.scores.begin(),
                                    " is not a number"));
  }
}

}  // namespace

std::optional<uint8_t> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [stop, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || stop != text.data() + 5) return std::nullopt;
  return byte;
}

Spm::Spm(const Vocabulary& vocabulary)
    : n_tokens_(vocabulary.n_tokens()), unknown_(vocabulary.data().ids.unknown) {
  check_scores(vocabulary.data());
  Symbol next = n_tokens_;
  for (TokenId id = 0; id < n_tokens_; ++id) {
    const std::string& text = vocabulary.text(id);
    if (const auto byte = byte_of_token(text)) byte_tokens_[*byte] = id;
    if (vocabulary.find_plain(text) == id) add_characters(text, next);
  }
  stranger_ = next;
  for (auto& [character, symbol] : characters_) {
    if (const auto id = vocabulary.find_plain(character)) symbol = *id;
  }
  const std::vector<int32_t> ranks = ranks_of(vocabulary.data().scores);
  for (TokenId id = 0; id < n_tokens_; ++id) {
    const std::string& text = vocabulary.text(id);
    if (vocabulary.find_plain(text) != id || text.size() > kLongestMerged) continue;
    add_merges(vocabulary, id, ranks[static_cast<size_t>(id)]);
    add_neighbours(text);
  }
}

void Spm::add_characters(std::string_view text, Symbol& next) {
  while (!text.empty()) {
    const size_t n = first_length(text);
    if (characters_.try_emplace(std::string(text.substr(0, n)), next).second) ++next;
    text.remove_prefix(n);
  }
}

// Every way to make the token of two symbols.
void Spm::add_merges(const Vocabulary& vocabulary, TokenId token, int32_t rank) {
  const std::string_view text = vocabulary.text(token);
  if (text.empty()) return;
  const auto symbol_of_part = [&](std::string_view part) -> std::optional<Symbol> {
    if (first_length(part) == part.size()) return symbol_of(part);
    return vocabulary.find_plain(part);
  };
  for (size_t cut = first_length(text); cut < text.size(); cut += first_length(text.substr(cut))) {
    const auto left = symbol_of_part(text.substr(0, cut));
    const auto right = symbol_of_part(text.substr(cut));
    if (left && right) merges_.add(*left, *right, {rank, token});
  }
}

void Spm::add_neighbours(std::string_view text) {
  std::optional<Symbol> last;
  while (!text.empty()) {
    const size_t n = first_length(text);
    const Symbol symbol = symbol_of(text.substr(0, n));
    if (last) neighbours_.add(*last, symbol, {0, 0});
    last = symbol;
    text.remove_prefix(n);
  }
}

Symbol Spm::symbol_of(std::string_view character) const {
  const auto found = characters_.find(character);
  return found == characters_.end() ? stranger_ : found->second;
}

void Spm::emit_bytes(std::string_view bytes, std::vector<TokenId>& out) const {
  for (const char c : bytes) {
    const std::optional<TokenId> token = byte_tokens_[static_cast<uint8_t>(c)];
    if (token) {
      out.push_back(*token);
    } else if (unknown_) {
      out.push_back(*unknown_);
    }
  }
}

void Spm::encode(std::string_view text, MergeSequence& scratch, std::vector<TokenId>& out) const {
  scratch.clear();
  Symbol last = stranger_;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t n = first_length(text.substr(at));
    const Symbol symbol = symbol_of(text.substr(at, n));
    if (neighbours_.find(last, symbol).rank == MergeTable::kNoRank) {
      encode_stretch(text.substr(from, at - from), scratch, out);
      from = at;
    }
    scratch.add(symbol, static_cast<uint32_t>(n));
    last = symbol;
    at += n;
  }
  encode_stretch(text.substr(from), scratch, out);
}

// `scratch` holds the symbols of `text`, and none afterwards.
void Spm::encode_stretch(std::string_view text, MergeSequence& scratch,
                         std::vector<TokenId>& out) const {
  scratch.merge(merges_);
  scratch.for_each([&](const MergeSequence::Part& part) {
    if (part.symbol < n_tokens_) {
      out.push_back(part.symbol);
    } else {
      emit_bytes(text.substr(part.begin, part.end - part.begin), out);
    }
  });
  scratch.clear();
}

}  // namespace sluice::text
