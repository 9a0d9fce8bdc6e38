// Random GBNF over a few characters, and vocabularies that fit: short strings of the same
// characters, some cut inside one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace sluice::text::test {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  // Below `n`.
  size_t roll(size_t n) { return static_cast<size_t>(random_bits(seed_, n_rolls_++) % n); }
  bool chance(size_t one_in) { return roll(one_in) == 0; }

 private:
  uint64_t seed_;
  uint64_t n_rolls_ = 0;
};

constexpr std::string_view kFewCharacters[] = {"a", "b", "c", "é", "世", "界", "😀"};

class RandomGrammar {
 public:
  explicit RandomGrammar(Dice& dice) : dice_(dice), n_rules_(1 + dice.roll(5)) {}

  std::string text() {
    std::string out = cat("root ::= ", choice(0), "\n");
    for (size_t r = 1; r < n_rules_; ++r) out += cat("r", r, " ::= ", choice(0), "\n");
    return out;
  }

 private:
  std::string choice(int depth) {
    std::string out = sequence(depth);
    while (dice_.chance(2)) out += cat(" | ", sequence(depth));
    return out;
  }

  std::string sequence(int depth) {
    std::string out;
    const size_t n = dice_.chance(12) ? 0 : 1 + dice_.roll(3);
    for (size_t i = 0; i < n; ++i) out += item(depth) + quantifier() + " ";
    return out;
  }

  std::string item(int depth) {
    switch (dice_.roll(depth < 3 ? 7 : 4)) {
      case 0:
        return cat("[", dice_.chance(4) ? "^" : "", dice_.chance(2) ? "a-b" : "", character(), "]");
      case 1:
      case 2:
        return cat("\"", character(), dice_.chance(2) ? character() : "", "\"");
      case 3:
        return dice_.chance(6) ? "." : cat("\"", character(), "\"");
      case 4:
      case 5:
        return n_rules_ > 1 ? rule() : cat("\"", character(), "\"");
      default:
        return cat("(", choice(depth + 1), ")");
    }
  }

  std::string rule() {
    const size_t r = dice_.roll(n_rules_);
    return r == 0 ? "root" : cat("r", r);
  }

  std::string quantifier() {
    static constexpr std::string_view kQuantifiers[] = {"*",     "+",    "?",  "{2}",
                                                        "{1,3}", "{2,}", "{0}"};
    return std::string(dice_.chance(3) ? kQuantifiers[dice_.roll(std::size(kQuantifiers))] : "");
  }

  std::string_view character() { return kFewCharacters[dice_.roll(std::size(kFewCharacters))]; }

  Dice& dice_;
  size_t n_rules_;
};

inline std::string random_text(Dice& dice, size_t max_characters) {
  std::string out;
  const size_t n = dice.roll(max_characters + 1);
  for (size_t i = 0; i < n; ++i) out += kFewCharacters[dice.roll(std::size(kFewCharacters))];
  return out;
}

// Token 0 is empty, as control tokens are, and 1 has bytes but will be used as an end token.
inline std::vector<std::string> random_vocabulary(Dice& dice, size_t n_tokens) {
  std::vector<std::string> out = {"", "a"};
  while (out.size() < n_tokens) {
    std::string token = random_text(dice, dice.chance(10) ? 30 : 4);
    if (dice.chance(3) && !token.empty()) token = token.substr(dice.roll(token.size()));
    if (dice.chance(3) && !token.empty()) token.resize(1 + dice.roll(token.size()));
    out.push_back(token);
  }
  return out;
}

}  // namespace sluice::text::test
