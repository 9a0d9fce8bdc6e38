// How long a megabyte takes with a vocabulary of 150,000 tokens. The bounds are generous, for a
// busy machine: what they must catch is time that grows with the square of a length.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <unordered_set>

#include "base/error.h"
#include "support/sanitizers.h"
#include "text/tokenizer/tokenizer.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

constexpr size_t kMegabyte = 1 << 20;
constexpr double kMaxSeconds = 1.0;  // measured: 0.1 to 0.5 on one core of a 2020 server

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

  std::string text() {
    std::string text;
    while (text.size() < kMegabyte) {
      text += word();
      if (random_() % 10 == 0) text += ", ";
      if (random_() % 30 == 0) text += ".\n    for (int i = 0; i < 1024; ++i) {\r\n\t";
    }
    return text;
  }

 private:
  std::mt19937_64 random_{1};
};

// A large vocabulary, whose merges are all used by the words it was made of.
const Tokenizer& large_tokenizer(const std::string& pre) {
  static const TokenizerData kData = [] {
    TokenizerData data = byte_data();
    std::unordered_set<std::string> known(data.tokens.begin(), data.tokens.end());
    Prose prose;
    while (data.tokens.size() < 150000) {
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
  }();
  static std::map<std::string, Tokenizer> tokenizers;
  if (const auto found = tokenizers.find(pre); found != tokenizers.end()) return found->second;
  TokenizerData data = kData;
  data.pre = pre;
  return tokenizers.emplace(pre, Tokenizer(std::move(data))).first->second;
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Prints the time, too.
double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text,
                         const std::string& what) {
  const double start = thread_seconds();
  const Ids ids = tokenizer.encode(text, {.add_special = false, .parse_special = true});
  const double taken = thread_seconds() - start;
  EXPECT_EQ(tokenizer.decode(ids), text) << what;
  std::printf("%-28s %8zu bytes %8zu tokens %6.3f s\n", what.c_str(), text.size(), ids.size(),
              taken);
  return taken;
}

#define SKIP_UNDER_SANITIZERS() \
  if (sluice::test::kSanitized) GTEST_SKIP() << "SKIPPED: times mean nothing under a sanitizer"

TEST(TokenizerTime, AMegabyteOfTextAndCodeTakesLessThanASecond) {
  SKIP_UNDER_SANITIZERS();
  const std::string text = Prose().text();
  for (const char* pre : {"qwen2", "gpt-4o", "tekken", "gpt-2", "deepseek-llm", "deepseek-v3",
                          "starcoder", "default"}) {
    EXPECT_LT(seconds_to_encode(large_tokenizer(pre), text, pre), kMaxSeconds) << pre;
  }
}

std::vector<std::pair<std::string, std::string>> runs_without_an_end(size_t n_bytes) {
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

// With the square of the length, a quarter would still take minutes.
TEST(TokenizerTime, AMegabyteWithoutASpaceIsNotQuadratic) {
  SKIP_UNDER_SANITIZERS();
  for (const auto& [what, text] : runs_without_an_end(kMegabyte)) {
    EXPECT_LT(seconds_to_encode(large_tokenizer("qwen2"), text, "qwen2, " + what), kMaxSeconds);
  }
  for (const char* pre : {"gpt-4o", "gpt-2", "deepseek-llm", "deepseek-v3"}) {
    for (const auto& [what, text] : runs_without_an_end(kMegabyte / 4)) {
      EXPECT_LT(seconds_to_encode(large_tokenizer(pre), text, cat(pre, ", ", what)), kMaxSeconds);
    }
  }
}

TEST(TokenizerTime, AMegabyteForLlamaTakesLessThanASecond) {
  SKIP_UNDER_SANITIZERS();
  Prose prose;
  TokenizerData data = spm_data({});
  std::unordered_set<std::string> known;
  while (data.tokens.size() < 32000) {
    std::string word = prose.word();
    if (word[0] == ' ') word = std::string(kSpmSpace) + word.substr(1);
    for (size_t n = 1; n <= word.size(); ++n) {
      if (n < word.size() && (word[n] & 0xc0) == 0x80) continue;  // within a character
      if (!known.insert(word.substr(0, n)).second) continue;
      add_token(data, word.substr(0, n));
      data.scores.push_back(-static_cast<float>(data.tokens.size()));
    }
  }
  const Tokenizer tokenizer(std::move(data));
  EXPECT_LT(seconds_to_encode(tokenizer, Prose().text(), "llama"), kMaxSeconds);
  EXPECT_LT(seconds_to_encode(tokenizer, std::string(kMegabyte, 'e'), "llama, one letter"),
            kMaxSeconds);
}

}  // namespace
}  // namespace sluice::text
