// libFuzzer entry for grammars: any bytes compile, as GBNF or as a JSON schema, or throw Error;
// what compiled is walked with tokens, and each mask must agree with trying the tokens one by one.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/matcher.h"
#include "text/json_schema/json_schema.h"

namespace sluice::text {
namespace {

// Low enough that the slowest grammar within them takes some tens of milliseconds under sanitizers.
GrammarLimits small_limits() {
  GrammarLimits limits;
  limits.depth = 20;
  limits.rules = 500;
  limits.parts = 4000;
  limits.repetition = 3000;
  limits.nodes = 20000;
  limits.states = 3000;
  limits.work = 200000;
  return limits;
}

std::vector<std::string> vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* token :
       {"ab",
        "aaa",
        "\":",
        "{\"",
        "\"}",
        "],",
        "[[",
        "}}}",
        "true",
        "null",
        "12",
        "0.",
        "\n  ",
        "  ",
        "é",
        "世",
        "\xe4\xb8",
        "\x96",
        "\\u00",
        "\\\"",
        "\",\"",
        "aaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    tokens.emplace_back(token);
  }
  tokens.emplace_back();  // the end token
  return tokens;
}

Grammar compile(uint8_t selector, std::string_view text) {
  if (selector % 2 == 0) return compile_gbnf(text, small_limits());
  JsonSchemaOptions options;
  options.limits = small_limits();
  options.spacing = static_cast<JsonSpacing>(selector / 2 % 3);
  return compile_json_schema(text, options);
}

// Follows the first allowed token from `choice` on, and compares the mask of each step.
void walk(const std::shared_ptr<const Grammar>& grammar, uint64_t choice) {
  static const auto trie = std::make_shared<const TokenTrie>(vocabulary());
  const auto n_tokens = static_cast<TokenId>(trie->n_tokens());
  GrammarMatcher matcher(grammar, trie, {n_tokens - 1}, choice % 3 == 0 ? 0 : 1 << 16);
  std::vector<uint64_t> bits((trie->n_tokens() + 63) / 64);
  for (int step = 0; step < 12; ++step) {
    matcher.fill_mask(bits);
    TokenId next = -1;
    for (TokenId i = 0; i < n_tokens; ++i) {
      const auto token =
          static_cast<TokenId>((choice + static_cast<uint64_t>(i)) % trie->n_tokens());
      const bool is_allowed = (bits[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
      if (step % 4 == 0) {
        GrammarMatcher copy = matcher;
        CHECK(copy.accept(token) == is_allowed);
      }
      if (is_allowed && next < 0) next = token;
    }
    // All single bytes are tokens, so only an end can be without a next one.
    CHECK(next >= 0 || matcher.is_finished());
    if (next < 0) break;
    CHECK(matcher.accept(next));
    choice = choice * 0x9e3779b97f4a7c15u + 1;
  }
}

}  // namespace
}  // namespace sluice::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::text;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const auto grammar = std::make_shared<const Grammar>(compile(data[0], text));
    for (const uint64_t choice : {uint64_t{0}, uint64_t{'"'}, uint64_t{data[0]} + size * 31}) {
      walk(grammar, choice);
    }
  } catch (const sluice::Error&) {
    // Refused, which is an answer.
  }
  return 0;
}
