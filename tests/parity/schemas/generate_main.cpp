// Prints one line of JSON for each text that a random-weight model wrote under a random schema:
// {"seed": ..., "schema": ..., "output": "..."}. schema_test.mjs lets a validator judge them.
//   generate_constrained N_SCHEMAS N_TEXTS [FIRST_SEED]
//   generate_constrained --accept     whether the JSON strings on standard input hold JSON
//   themselves
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "parity/schemas/random_schema.h"
#include "parity/schemas/random_writer.h"
#include "text/grammar/matcher.h"
#include "text/json_schema/json_schema.h"
#include "unit/text/grammar/vocabulary.h"

namespace sluice::text::test {
namespace {

constexpr size_t kTokens = 4096;
constexpr JsonSpacing kSpacings[] = {JsonSpacing::compact, JsonSpacing::spaced, JsonSpacing::lines};

// False, after saying why, if a text was not finished or is not JSON.
bool write_texts(uint64_t seed, size_t n_texts, const std::shared_ptr<const TokenTrie>& trie) {
  const auto schema = RandomSchema(seed).make();
  const auto end = static_cast<TokenId>(trie->n_tokens() - 1);
  JsonSchemaOptions options;
  options.spacing = kSpacings[seed % std::size(kSpacings)];
  const auto grammar = std::make_shared<const Grammar>(compile_json_schema(schema.dump(), options));
  const GrammarMatcher matcher(grammar, trie, {end});
  Dice dice(seed ^ 0xace);
  for (size_t i = 0; i < n_texts; ++i) {
    const auto text = RandomWriter(*trie, end, dice).write(matcher, 20 + dice.roll(60), 4000);
    if (!text || !nlohmann::json::accept(*text)) {
      std::cerr << "seed " << seed << ", text " << i << ": "
                << (text ? "not JSON: " + *text : "no end") << "\nschema: " << schema.dump()
                << "\n";
      return false;
    }
    const nlohmann::ordered_json line = {{"seed", seed}, {"schema", schema}, {"output", *text}};
    std::cout << line.dump() << "\n";
  }
  return true;
}

// One JSON string a line.
int accept_all() {
  size_t n = 0;
  for (std::string line; std::getline(std::cin, line); ++n) {
    const auto text = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (text.is_string() && nlohmann::json::accept(text.get_ref<const std::string&>())) continue;
    std::cerr << line << "\n";
    return 1;
  }
  std::cout << "nlohmann-json accepts " << n << " texts\n";
  return 0;
}

}  // namespace
}  // namespace sluice::text::test

int main(int argc, char** argv) {
  using namespace sluice::text;
  if (argc == 2 && std::string(argv[1]) == "--accept") return test::accept_all();
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s N_SCHEMAS N_TEXTS [FIRST_SEED] | --accept\n", argv[0]);
    return 2;
  }
  const uint64_t n_schemas = std::strtoull(argv[1], nullptr, 10);
  const size_t n_texts = std::strtoull(argv[2], nullptr, 10);
  const uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  auto tokens = test::natural_vocabulary(test::kTokens);
  tokens.emplace_back();  // the end token
  const auto trie = std::make_shared<const TokenTrie>(std::move(tokens));
  for (uint64_t seed = first; seed < first + n_schemas; ++seed) {
    try {
      if (!test::write_texts(seed, n_texts, trie)) return 1;
    } catch (const sluice::Error& error) {
      std::cerr << "seed " << seed << ": " << error.what()
                << "\nschema: " << test::RandomSchema(seed).make().dump() << "\n";
      return 1;
    }
  }
  return 0;
}
