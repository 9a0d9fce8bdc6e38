// Grammars and schemas made to cost too much: each is refused by the name of its limit, soon, and
// without much memory.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "text/grammar/gbnf.h"
#include "text/json_schema/json_schema.h"
#include "unit/text/grammar/accepts.h"
#include "unit/text/grammar/vocabulary.h"

namespace sluice::text {
namespace {

using test::gbnf_error;
using test::schema_error;

std::string repeated(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

void expect_contains(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << "expected: " << part << "\ngot: " << error;
}

TEST(GrammarLimits, BoundTheSizeOfTheSource) {
  expect_contains(gbnf_error(std::string((1 << 20) + 1, ' ')), "1048576 is the limit");
  expect_contains(schema_error(std::string((1 << 20) + 1, ' ')), "1048576 is the limit");
}

TEST(GrammarLimits, BoundGroupsInGroups) {
  EXPECT_EQ(gbnf_error("root ::= " + repeated("(", 64) + "\"a\"" + repeated(")", 64)), "");
  expect_contains(gbnf_error("root ::= " + repeated("(", 65) + "\"a\"" + repeated(")", 65)),
                  "expected at most 64 groups inside each other");
  expect_contains(gbnf_error("root ::= " + repeated("(", 100000)), "expected at most 64 groups");
}

TEST(GrammarLimits, BoundRulesAndParts) {
  std::string rules = "root ::= \"a\"\n";
  for (int i = 0; i < 20000; ++i) rules += cat("r", i, " ::= \"a\"\n");
  expect_contains(gbnf_error(rules), "more than 16384 rules");
  expect_contains(gbnf_error("root ::= " + repeated(".", 262145)), "more than 262144 parts");
}

TEST(GrammarLimits, BoundRepetitionsInRepetitions) {
  expect_contains(gbnf_error("root ::= ((\"a\"{2000}){2000}){2000}"), "nodes, which is the limit");
  // Twice as long with every rule.
  std::string doubling = "root ::= r40\nr0 ::= [a-z]\n";
  for (int i = 1; i <= 40; ++i) doubling += cat("r", i, " ::= r", i - 1, " r", i - 1, "\n");
  EXPECT_EQ(gbnf_error(doubling), "") << "calls are not written out";
}

TEST(GrammarLimits, BoundTheStatesOfAnExponentialAutomaton) {
  // Which of the last 24 letters were `a` takes 2^24 states.
  expect_contains(gbnf_error("root ::= [ab]* \"a\" [ab]{24} \"!\""), "which is the limit");
  expect_contains(schema_error(R"({"type":"string","pattern":"a[ab]{24}$"})"),
                  "which is the limit");
}

TEST(GrammarLimits, BoundAmbiguity) {
  // Every `a` may or may not be closed by a `b`: the ways grow with the text.
  GrammarMatcher matcher = test::matcher_of(
      compile_gbnf("root ::= s\ns ::= \"a\" s | \"a\" s \"b\" | \"a\" s \"c\" | \"\""));
  const std::string error = test::error_of([&] {
    for (int i = 0; i < 10000; ++i) ASSERT_TRUE(matcher.accept_bytes("a"));
  });
  expect_contains(error, "can be read in more than 512 ways");
}

// Any letter may belong to any of sixteen rules inside each other, which takes seconds to follow
// through the words of a vocabulary, though no single one of them can be read in too many ways.
TEST(GrammarLimits, BoundTheWorkOfAMask) {
  std::string text = "root ::= s0\n";
  for (int i = 0; i < 16; ++i) {
    text += cat("s", i, " ::= [a-z]* s", i + 1, " \"", std::string(1 + i, '!'), "\"? | [a-z]\n");
  }
  text += "s16 ::= [a-z] s0?";
  const auto trie = std::make_shared<const TokenTrie>(test::natural_vocabulary(10000));
  const GrammarMatcher matcher(std::make_shared<const Grammar>(compile_gbnf(text)), trie, {});
  std::vector<uint64_t> bits((trie->n_tokens() + 63) / 64);
  expect_contains(test::error_of([&] { matcher.fill_mask(bits); }), "takes too long");
}

TEST(GrammarLimits, BoundSchemas) {
  expect_contains(schema_error(repeated(R"({"items":)", 200)), "nested more than 128 deep");
  expect_contains(schema_error(repeated("[", 100000)), "nested more than 128 deep");
  std::string wide = R"({"properties":{)";
  for (int i = 0; i < 2001; ++i) wide += cat(i == 0 ? "" : ",", "\"p", i, "\":true");
  expect_contains(schema_error(wide + "}}"), "more than 2000 members");
  // Each step of the recursion is a new combination.
  expect_contains(schema_error(R"({"$defs":{"a":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"},
      {"$ref":"#/$defs/b"}]}}},"b":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/b"},
      {"$ref":"#/$defs/a"}]}}}},"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]})"),
                  "limit");
  expect_contains(schema_error(R"({"allOf":[{"$ref":"#"}]})"), "refer to themselves");
  expect_contains(schema_error(R"({"type":"string","maxLength":65537})"),
                  "expected an integer from 0 to 65536");
}

// Few states, but each stands for many places of the repetitions.
TEST(GrammarLimits, BoundTheStepsOfMakingAnAutomatonDeterministic) {
  expect_contains(gbnf_error("root ::= ([a-z]{0,2000} [a-z0-9]{0,2000}){0,30}"),
                  "which is the limit");
}

TEST(GrammarLimits, CanBeSetLower) {
  GrammarLimits limits;
  limits.states = 100;
  expect_contains(gbnf_error("root ::= \"a\"{200}", limits), "more than 100 states");
  limits = {};
  limits.nodes = 100;
  expect_contains(gbnf_error("root ::= \"a\"{200}", limits), "more than 100 nodes");
  limits = {};
  limits.work = 100;
  expect_contains(gbnf_error("root ::= \"a\"{200}", limits), "more than 100 steps");
  limits = {};
  limits.repetition = 100;
  expect_contains(gbnf_error("root ::= \"a\"{200}", limits), "a count above 100");
  limits = {};
  limits.rules = 1;
  expect_contains(gbnf_error("root ::= \"a\" b\nb ::= \"b\"", limits), "more than 1 rules");
}

}  // namespace
}  // namespace sluice::text
