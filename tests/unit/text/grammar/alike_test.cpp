// States that short strings cannot tell apart: few where a grammar counts, and never wrong.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/alike.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/sanitizers.h"
#include "text/grammar/gbnf.h"
#include "unit/text/grammar/random.h"

namespace sluice::text::grammar {
namespace {

constexpr size_t kMuch = size_t{1} << 30;

size_t n_classes(const std::vector<uint32_t>& classes) {
  return std::set<uint32_t>(classes.begin(), classes.end()).size();
}

TEST(StatesAlike, AreFewWhereAGrammarCounts) {
  const Grammar grammar = compile_gbnf("root ::= \"<\" [a-z]{0,1000} \">\"");
  const uint32_t lengths[] = {8, 16, 32};
  const auto classes = states_alike(grammar, lengths, kMuch);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_GT(grammar.n_states(), 1000u);
  // Dead, start, end, far from the limit, and one for each step towards it.
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(n_classes(classes[i]), lengths[i] + 6) << lengths[i];
    EXPECT_GE(n_classes(classes[i]), lengths[i]) << lengths[i];
  }
}

TEST(StatesAlike, AreTheStatesThemselvesWhereThatTakesTooMuchWork) {
  const Grammar grammar = compile_gbnf("root ::= \"<\" [a-z]{0,1000} \">\"");
  const uint32_t lengths[] = {8};
  const auto classes = states_alike(grammar, lengths, 10);
  EXPECT_EQ(n_classes(classes[0]), grammar.n_states());
}

// What a string of bytes tells about a state, without calls: where it dies, and where it could end.
std::string behaviour(const Grammar& grammar, Grammar::State state, std::string_view bytes) {
  std::string out = grammar.accepts(state) ? "E" : ".";
  for (const char byte : bytes) {
    state = grammar.move(state, static_cast<uint8_t>(byte)).to();
    if (state == Grammar::kDead) return out + "x";
    out += grammar.accepts(state) ? "E" : ".";
  }
  return out;
}

TEST(StatesAlike, BehaveAlikeOnAllShortStrings) {
  const uint32_t lengths[] = {0, 1, 2, 3, 5};
  const int n_texts = sluice::test::kSanitized ? 4 : 20;  // all without sanitizers
  size_t n_shared = 0, n_grammars = 0;
  for (uint64_t seed = 0; n_grammars < 60; ++seed) {
    test::Dice dice(seed);
    const std::string text = "root ::= ((\"ab\" | [ac]{0,9} \"c\") [b]{2,7}){1,4} " +
                             std::string(dice.roll(4) + 1, '.') + "\"a\"{0," +
                             std::to_string(1 + dice.roll(20)) + "}";
    const Grammar grammar = compile_gbnf(text);
    ++n_grammars;
    const auto classes = states_alike(grammar, lengths, kMuch);
    for (size_t l = 0; l < std::size(lengths); ++l) {
      std::vector<Grammar::State> first(grammar.n_states(), Grammar::kDead);  // by class
      for (Grammar::State s = 1; s < grammar.n_states(); ++s) {
        Grammar::State& twin = first[classes[l][s]];
        if (twin == Grammar::kDead) twin = s;
        if (twin == s) continue;
        ++n_shared;
        for (int i = 0; i < n_texts; ++i) {
          std::string bytes = test::random_text(dice, 5);
          bytes.resize(std::min<size_t>(bytes.size(), lengths[l]));
          ASSERT_EQ(behaviour(grammar, s, bytes), behaviour(grammar, twin, bytes))
              << text << ": states " << s << " and " << twin << " on " << bytes;
        }
      }
    }
  }
  EXPECT_GT(n_shared, 10000u) << "nothing was compared";
}

}  // namespace
}  // namespace sluice::text::grammar
