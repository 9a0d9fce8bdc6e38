// Writes a text that a grammar allows as a model with random weights would: any allowed token may
// come, closing ones more often, and after a while whatever brings the end nearer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/matcher.h"
#include "unit/text/grammar/random.h"

namespace sluice::text::test {

class RandomWriter {
 public:
  // Both outlive it. `end` is the matcher's end token; tokens 0 to 255 are the bytes.
  RandomWriter(const TokenTrie& trie, TokenId end, Dice& dice)
      : trie_(trie), end_(end), dice_(dice) {}

  // Nothing if the text had no end after `max_tokens`.
  std::optional<std::string> write(GrammarMatcher matcher, size_t patience, size_t max_tokens) {
    std::vector<uint64_t> bits((trie_.n_tokens() + 63) / 64);
    std::string text;
    for (size_t n = 0; n < max_tokens; ++n) {
      matcher.fill_mask(bits);
      const TokenId token = choose(allowed_in(bits), n >= patience);
      if (token < 0 || !matcher.accept(token)) return std::nullopt;
      if (token == end_) return text;
      text += trie_.bytes(token);
    }
    return std::nullopt;
  }

 private:
  std::vector<TokenId> allowed_in(const std::vector<uint64_t>& bits) const {
    std::vector<TokenId> allowed;
    for (size_t t = 0; t < trie_.n_tokens(); ++t) {
      if ((bits[t / 64] >> (t % 64) & 1) != 0) allowed.push_back(static_cast<TokenId>(t));
    }
    return allowed;
  }

  // How near a token brings the end: ends and closing brackets first, opening ones last.
  size_t distance(TokenId token) const {
    static constexpr std::string_view kOrder = "}]\"ntf0123456789,: ";
    if (token == end_) return 0;
    const std::string_view bytes = trie_.bytes(token);
    if (bytes.find_first_of("{[\\") != std::string_view::npos) return 1000 + bytes.size();
    const size_t place = kOrder.find(bytes.back());
    return 1 + (place == std::string_view::npos ? kOrder.size() : place) + 30 * (bytes.size() - 1);
  }

  TokenId choose(const std::vector<TokenId>& allowed, bool hurry) {
    if (allowed.empty()) return -1;
    if (!hurry && !dice_.chance(6)) return allowed[dice_.roll(allowed.size())];
    // Inside a string, where brackets close nothing, the quote does; if it may not come yet, some
    // pattern wants more: perhaps one of these.
    const TokenId quote = '"', other = '~';
    if (is_among(other, allowed)) {
      return is_among(quote, allowed) ? quote : static_cast<TokenId>("fo1"[dice_.roll(3)]);
    }
    TokenId best = allowed[0];
    for (const TokenId token : allowed) {
      if (distance(token) < distance(best)) best = token;
    }
    return best;
  }

  static bool is_among(TokenId token, const std::vector<TokenId>& tokens) {
    return std::ranges::find(tokens, token) != tokens.end();
  }

  const TokenTrie& trie_;
  const TokenId end_;
  Dice& dice_;
};

}  // namespace sluice::text::test
