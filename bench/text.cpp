// What text costs: a token mask while text is written by a grammar, from a cold start
// (docs/decisions/0004-grammar-masks.md), and a megabyte for the tokenizers; with a vocabulary of
// 150,000 tokens, in processor time.
//
//   bench_text
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "unit/text/grammar/usual_grammars.h"
#include "unit/text/grammar/vocabulary.h"
#include "unit/text/tokenizer/long_texts.h"

namespace sluice::text {
namespace {

constexpr size_t kTokens = 150000;
constexpr size_t kMasks = 400;
constexpr size_t kMegabyte = 1 << 20;

// This thread's own time: other programs on the machine must not count.
double microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

void print_masks(const test::UsualGrammar& c, const std::shared_ptr<const TokenTrie>& trie) {
  const auto end = static_cast<TokenId>(trie->n_tokens() - 1);
  const double begin = microseconds();
  const auto grammar = std::make_shared<const Grammar>(c.compile(c.text));
  GrammarMatcher matcher(grammar, trie, {end});
  const double compile_ms = (microseconds() - begin) / 1000;
  std::vector<uint64_t> bits((trie->n_tokens() + 63) / 64);
  std::vector<double> times;
  double sum = 0;
  test::Dice dice(1);
  while (times.size() < kMasks) {
    const double start = microseconds();
    matcher.fill_mask(bits);
    times.push_back(microseconds() - start);
    sum += times.back();
    const TokenId token = test::choose(bits, *trie, dice);
    if (token < 0 || token == end || !matcher.accept(token)) matcher.reset();
  }
  std::ranges::sort(times);
  std::printf("%-22s %8zu %10.1f %10.1f %10.1f %10.1f %10.1f\n", c.name, grammar->n_states(),
              compile_ms, times[kMasks / 2], times[kMasks * 95 / 100], times.back(),
              sum / static_cast<double>(kMasks));
}

void print_all_masks() {
  auto tokens = test::natural_vocabulary(kTokens - 1);
  tokens.emplace_back();  // the end token
  const auto trie = std::make_shared<const TokenTrie>(std::move(tokens));
  std::printf("%-22s %8s %10s %10s %10s %10s %10s\n", "grammar", "states", "compile/ms",
              "median/us", "p95/us", "max/us", "mean/us");
  for (const test::UsualGrammar& c : test::usual_grammars()) print_masks(c, trie);
}

void print_encoding(const Tokenizer& tokenizer, const std::string& text, const std::string& what) {
  const double start = microseconds();
  const Ids ids = tokenizer.encode(text, kParsed);
  const double seconds = (microseconds() - start) / 1e6;
  std::printf("%-28s %8zu bytes %8zu tokens %6.3f s\n", what.c_str(), text.size(), ids.size(),
              seconds);
}

void print_tokenizers() {
  const std::string text = Prose().text(kMegabyte);
  const TokenizerData data = prose_data(kTokens);
  for (const char* pre : {"qwen2", "gpt-4o", "tekken", "gpt-2", "deepseek-llm", "deepseek-v3",
                          "starcoder", "default"}) {
    TokenizerData named = data;
    named.pre = pre;
    const Tokenizer tokenizer(std::move(named));
    print_encoding(tokenizer, text, pre);
    for (const auto& [what, run] : runs_without_an_end(kMegabyte)) {
      print_encoding(tokenizer, run, cat(pre, ", ", what));
    }
  }
  const Tokenizer llama(spm_prose_data(32000));
  print_encoding(llama, text, "llama");
  print_encoding(llama, std::string(kMegabyte, 'e'), "llama, one letter");
}

}  // namespace
}  // namespace sluice::text

int main() {
  sluice::text::print_all_masks();
  sluice::text::print_tokenizers();
}
