// A vocabulary of natural size and shape for tests of token masks: single bytes, words with and
// without a space before them, code, digits, runs of white space, mixes of punctuation such as
// `":{"`, scripts of two to four bytes a character, and pieces that cut characters in half.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "text/grammar/code_points.h"

namespace sluice::text::test {

class VocabularyMaker {
 public:
  // n_tokens distinct strings of at least one byte; the first 256 are the single bytes.
  std::vector<std::string> make(size_t n_tokens) {
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    add_white_space();
    add_numbers();
    // The shares are about those of multilingual vocabularies of today.
    while (tokens_.size() < n_tokens) {
      const uint64_t kind = draw(100);
      if (kind < 62) {
        add(latin_word());
      } else if (kind < 70) {
        add(punctuation());
      } else if (kind < 74) {
        add(punctuation() + word());
      } else if (kind < 76) {
        add(word() + punctuation());
      } else if (kind < 88) {
        add(script_word(0x4e00, 0x5fff, 1, 4));
      } else if (kind < 93) {
        add(cat(draw(2) == 0 ? " " : "", script_word(0x430, 0x44f, 2, 9)));
      } else if (kind < 96) {
        add(script_word(0x0e01, 0x0e2e, 2, 8));
      } else if (kind < 98) {
        add(script_word(0x1f300, 0x1f6ff, 1, 2));
      } else {
        add(half_character());
      }
    }
    tokens_.resize(n_tokens);
    return std::move(tokens_);
  }

 private:
  uint64_t draw(uint64_t below) { return random_bits(0x5eed, n_draws_++) % below; }

  void add(std::string token) {
    if (seen_.insert(token).second) tokens_.push_back(std::move(token));
  }

  void add_white_space() {
    for (size_t n = 1; n <= 128; ++n) add(std::string(n, ' '));
    for (size_t n = 1; n <= 16; ++n) {
      add(std::string(n, '\n'));
      add(std::string(n, '\t'));
      for (size_t m = 1; m <= 16; ++m) add(std::string(n, '\n') + std::string(m, ' '));
    }
  }

  void add_numbers() {
    for (int n = 0; n < 1000; ++n) add(std::to_string(n));
  }

  // Syllables, so that words share beginnings as real ones do.
  std::string word() {
    static constexpr std::string_view kOnsets[] = {"",   "b",  "c",  "d",  "f",  "g",  "h",  "l",
                                                   "m",  "n",  "p",  "r",  "s",  "t",  "v",  "w",
                                                   "st", "tr", "pr", "ch", "sh", "th", "pl", "cr"};
    static constexpr std::string_view kRhymes[] = {"a",   "e",  "i",  "o",   "u",  "er",
                                                   "in",  "on", "al", "ing", "ed", "ion",
                                                   "ent", "ar", "es", "it"};
    // Squares of draws: small numbers are the common ones.
    const auto rare = [&](uint64_t below) { return draw(below) * draw(below) / below; };
    std::string out;
    const uint64_t n_syllables = 1 + draw(2) + rare(4);
    for (uint64_t i = 0; i < n_syllables; ++i) {
      out += kOnsets[rare(std::size(kOnsets))];
      out += kRhymes[rare(std::size(kRhymes))];
    }
    return out;
  }

  std::string latin_word() {
    std::string out = word();
    const uint64_t style = draw(20);
    if (style < 5) out[0] = static_cast<char>(out[0] - 'a' + 'A');
    if (style == 5) out = cat(word(), "_", out);
    if (style == 6) {
      std::string second = word();
      second[0] = static_cast<char>(second[0] - 'a' + 'A');
      out += second;
    }
    if (style == 7) {
      for (char& c : out) c = static_cast<char>(c - 'a' + 'A');
    }
    return draw(2) == 0 ? cat(" ", out) : out;
  }

  std::string punctuation() {
    static constexpr std::string_view kMarks =
        "\"\"\"\"'':::,,,{{}}[[]]()().;;/\\\\-=_<>!?#$%&*+@^`|~  \n";
    std::string out;
    const uint64_t n = 1 + draw(2) + draw(4) * draw(2);
    for (uint64_t i = 0; i < n; ++i) out += kMarks[draw(kMarks.size())];
    return out;
  }

  std::string script_word(char32_t first, char32_t last, uint64_t min, uint64_t max) {
    std::string out;
    const uint64_t n = min + draw(max - min + 1);
    for (uint64_t i = 0; i < n; ++i) {
      // The beginning of a script is used more than its end.
      const uint64_t size = last - first + 1;
      grammar::append_utf8(out, first + static_cast<char32_t>(draw(size) * draw(size) / size));
    }
    return out;
  }

  std::string half_character() {
    std::string out =
        draw(2) == 0 ? script_word(0x4e00, 0x9fff, 1, 2) : script_word(0x1f300, 0x1f9ff, 1, 1);
    if (draw(2) == 0) out = out.substr(1);
    if (out.size() > 1 && draw(3) > 0) out.pop_back();
    return out;
  }

  uint64_t n_draws_ = 0;
  std::vector<std::string> tokens_;
  std::unordered_set<std::string> seen_;
};

inline std::vector<std::string> natural_vocabulary(size_t n_tokens) {
  return VocabularyMaker().make(n_tokens);
}

}  // namespace sluice::text::test
