// See pre_tokenizer.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

enum class Form {
  qwen2,
  qwen35,
  llama3,
  gpt4o,
  gpt2,
  tekken,
  deepseek_llm,
  deepseek_coder,
  deepseek_v3,
  digits_then_gpt2,
  fallback,
};

struct Named {
  std::string_view name;
  Form form;
  bool ignores_merges = false;
  bool adds_bos = false;
};

constexpr Named kNamed[] = {
    {"chatglm-bpe", Form::llama3},
    {"command-r", Form::digits_then_gpt2},
    {"dbrx", Form::llama3},
    {"deepseek-coder", Form::deepseek_coder},
    {"deepseek-llm", Form::deepseek_llm},
    {"deepseek-r1-qwen", Form::qwen2},
    {"deepseek-v3", Form::deepseek_v3},
    {"default", Form::fallback},
    {"glm4", Form::llama3},
    {"gpt-2", Form::gpt2},
    {"gpt-4o", Form::gpt4o},
    {"hunyuan", Form::qwen2},
    {"lfm2", Form::llama3, true, true},
    {"llama-bpe", Form::llama3, true, true},
    {"llama-v3", Form::llama3, true, true},
    {"llama3", Form::llama3, true, true},
    {"llama4", Form::gpt4o},
    {"megrez", Form::qwen2},
    {"mpt", Form::gpt2},
    {"olmo", Form::gpt2},
    {"phi-2", Form::gpt2},
    {"qwen2", Form::qwen2},
    {"qwen35", Form::qwen35},
    {"refact", Form::digits_then_gpt2},
    {"smaug-bpe", Form::llama3},
    {"smollm", Form::digits_then_gpt2},
    {"solar-open", Form::qwen2},
    {"stablelm2", Form::qwen2},
    {"starcoder", Form::digits_then_gpt2},
    {"tekken", Form::tekken, true, true},
};

constexpr const char* kContractions = "'s|'t|'re|'ve|'m|'ll|'d";
constexpr const char* kSpaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string any_case_contractions() { return std::string("(?i:") + kContractions + ")"; }

// qwen2 and llama3 differ in the digits alone, qwen35 also counts marks among the letters.
std::string words(std::string_view letters, std::string_view digits) {
  return cat(any_case_contractions(), R"(|[^\r\n\p{L}\p{N}]?[)", letters, "]+|", digits,
             R"(| ?[^\s\p{N})", letters, R"(]+[\r\n]*)", kSpaces);
}

// A change from small to capital letters begins a new piece.
std::string cased_words(std::string_view ending, std::string_view digits) {
  constexpr std::string_view kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  constexpr std::string_view kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  constexpr std::string_view kBefore = R"([^\r\n\p{L}\p{N}]?)";
  return cat(kBefore, kUpper, "*", kLower, "+", ending, "|", kBefore, kUpper, "+", kLower, "*",
             ending, "|", digits, R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)", kSpaces);
}

std::string gpt2_words() {
  return cat(kContractions, R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
}

// The letters of scripts with two cases, as a table of the Unicode version of its time.
constexpr std::string_view kDeepseekLetters =
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
    R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
    R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4})"
    R"(\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124})"
    R"(\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
    R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
    R"(\x{1e900}-\x{1e943})";
constexpr const char* kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
constexpr const char* kDeepseekEastAsian =
    R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
// `\s+$`, which looks at every space of a run that is not at the end again and again; this finds
// the same.
constexpr const char* kTrailingSpaces = R"((?<!\s)\s++$)";

constexpr const char* kDeepseekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> expressions(Form form) {
  switch (form) {
    case Form::qwen2:
      return {words(R"(\p{L})", R"(\p{N})")};
    case Form::qwen35:
      return {words(R"(\p{L}\p{M})", R"(\p{N})")};
    case Form::llama3:
      return {words(R"(\p{L})", R"(\p{N}{1,3})")};
    case Form::gpt4o:
      return {cased_words(any_case_contractions() + "?", R"(\p{N}{1,3})")};
    case Form::gpt2:
      return {gpt2_words()};
    case Form::tekken:
      return {cased_words("", R"(\p{N})")};
    case Form::deepseek_llm:
      return {R"([\r\n])",          cat(R"(\s?[)", kDeepseekLetters, "]+"),
              kDeepseekPunctuation, kTrailingSpaces,
              kDeepseekEastAsian,   R"(\p{N})"};
    case Form::deepseek_coder:
      return {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekEastAsian, R"(\p{N})"};
    case Form::deepseek_v3:
      return {R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
              kDeepseekV3Words};
    case Form::digits_then_gpt2:
      return {R"(\p{N})", gpt2_words()};
    case Form::fallback:
      return {R"([\p{P}\$\+<=>\^~\|]+)", gpt2_words(), R"(\p{N}+)", "[0-9][0-9][0-9]"};
  }
  return {};
}

[[noreturn]] void refuse(std::string_view name, std::string_view origin) {
  std::string known;
  for (const Named& named : kNamed) known += cat(known.empty() ? "" : ", ", named.name);
  std::string shown(name.substr(0, 60));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  throw Error(Errc::unsupported_model,
              cat(origin, ": pre-tokenizer '", shown, "' is not known; expected one of ", known));
}

}  // namespace

PreTokenizer::PreTokenizer(std::string_view name, std::string_view origin) {
  if (name.empty()) name = "default";
  const Named* named = std::ranges::find(kNamed, name, &Named::name);
  if (named == std::end(kNamed)) refuse(name, origin);
  ignores_merges_ = named->ignores_merges;
  adds_bos_ = named->adds_bos;
  for (const std::string& expression : expressions(named->form)) splits_.emplace_back(expression);
}

std::vector<std::string_view> PreTokenizer::names() {
  std::vector<std::string_view> names;
  for (const Named& named : kNamed) names.push_back(named.name);
  return names;
}

void PreTokenizer::split_valid(std::string_view text, SplitScratch& scratch,
                               std::vector<std::string_view>& pieces) const {
  if (splits_.size() == 1) return splits_[0].split(text, scratch, pieces);
  std::vector<std::string_view> coarse = {text};
  std::vector<std::string_view> fine;
  for (const SplitRegex& expression : splits_) {
    fine.clear();
    for (const std::string_view piece : coarse) expression.split(piece, scratch, fine);
    std::swap(coarse, fine);
  }
  pieces.insert(pieces.end(), coarse.begin(), coarse.end());
}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  SplitScratch scratch;
  while (!text.empty()) {
    const size_t n_valid = valid_utf8_length(text);
    if (n_valid > 0) split_valid(text.substr(0, n_valid), scratch, pieces);
    text.remove_prefix(n_valid);
    if (text.empty()) break;
    pieces.push_back(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

}  // namespace sluice::text
