// Long texts, and vocabularies made of the same words: for the test of long runs, and for
// bench_text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/tokenizer/spm.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {

// Words like those of a language: frequent syllables in random order; and Han characters.
class Prose {
 public:
  std::string word() {
    std::string text;
    if (random_() % 8 == 0) {
      for (size_t n = 1 + random_() % 4; n > 0; --n) {
        text += RandomTexts::utf8(static_cast<unsigned>(0x4e00 + random_() % 3000));
      }
      return text;
    }
    constexpr const char* kSyllables[] = {
        "th", "e",  "in", "er", "an", "re", "on", "at", "en", "nd", "ti", "es", "or", "te", "of",
        "ed", "is", "it", "al", "ar", "st", "to", "nt", "ng", "se", "ha", "as", "ou", "io", "le"};
    if (random_() % 2 == 0) text += ' ';
    for (size_t n = 1 + random_() % 5; n > 0; --n) text += kSyllables[random_() % 30];
    return text;
  }

  std::string text(size_t n_bytes) {
    std::string text;
    while (text.size() < n_bytes) {
      text += word();
      if (random_() % 10 == 0) text += ", ";
      if (random_() % 30 == 0) text += ".\n    for (int i = 0; i < 1024; ++i) {\r\n\t";
    }
    return text;
  }

 private:
  std::mt19937_64 random_{1};
};

// A vocabulary whose merges are all used by the words it was made of.
inline TokenizerData prose_data(size_t n_tokens) {
  TokenizerData data = byte_data();
  std::unordered_set<std::string> known(data.tokens.begin(), data.tokens.end());
  Prose prose;
  while (data.tokens.size() < n_tokens) {
    const std::string word = prose.word();
    for (size_t n = 1; n < word.size() && n < 12; ++n) {
      const std::string left = in_alphabet(word.substr(0, n));
      const std::string right = in_alphabet(word.substr(n, 1));
      if (!known.insert(left + right).second) continue;
      data.merges.push_back(left + " " + right);
      add_token(data, left + right);
    }
  }
  return data;
}

// The same for SentencePiece.
inline TokenizerData spm_prose_data(size_t n_tokens) {
  Prose prose;
  TokenizerData data = spm_data({});
  std::unordered_set<std::string> known;
  while (data.tokens.size() < n_tokens) {
    std::string word = prose.word();
    if (word[0] == ' ') word = std::string(kSpmSpace) + word.substr(1);
    for (size_t n = 1; n <= word.size(); ++n) {
      if (n < word.size() && (word[n] & 0xc0) == 0x80) continue;  // within a character
      if (!known.insert(word.substr(0, n)).second) continue;
      add_token(data, word.substr(0, n));
      data.scores.push_back(-static_cast<float>(data.tokens.size()));
    }
  }
  return data;
}

// Texts in which nothing but the end ends a piece, or a stretch of one kind; by their names.
inline std::vector<std::pair<std::string, std::string>> runs_without_an_end(size_t n_bytes) {
  std::mt19937_64 random(3);
  std::string letters;
  while (letters.size() < n_bytes) letters += static_cast<char>('a' + random() % 26);
  std::string han;
  while (han.size() < n_bytes) {
    han += RandomTexts::utf8(static_cast<unsigned>(0x4e00 + random() % 3000));
  }
  const std::string spaces(n_bytes, ' ');
  return {{"letters", letters},
          {"Han", han},
          {"one letter", std::string(n_bytes, 'e')},
          {"one capital", std::string(n_bytes, 'E')},
          {"one digit", std::string(n_bytes, '7')},
          {"line ends", std::string(n_bytes, '\n')},
          {"one sign", std::string(n_bytes, '!')},
          {"no UTF-8", std::string(n_bytes, '\xff')},
          {"spaces", spaces},
          {"spaces and a letter", spaces + "x"},
          {"spaces and Han", spaces + "\xe4\xb8\xad"}};
}

}  // namespace sluice::text
