// The pre-tokenizers: where each family cuts, by literal examples, and what holds for all of them.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(std::string_view name, std::string_view text) {
  Pieces pieces;
  PreTokenizer(name).split(text, pieces);
  return pieces;
}

struct SplitCase {
  std::vector<const char*> names;
  const char* text;
  Pieces pieces;
};

const std::vector<const char*> kQwen2 = {"qwen2",   "deepseek-r1-qwen", "stablelm2",
                                         "hunyuan", "solar-open",       "megrez"};
const std::vector<const char*> kLlama3 = {"llama-bpe", "llama3", "llama-v3",    "lfm2",
                                          "glm4",      "dbrx",   "chatglm-bpe", "smaug-bpe"};
const std::vector<const char*> kGpt4o = {"gpt-4o", "llama4"};
const std::vector<const char*> kGpt2 = {"gpt-2", "olmo", "mpt", "phi-2"};
const std::vector<const char*> kDigitsFirst = {"starcoder", "refact", "smollm", "command-r"};

// é as a letter and a mark, U+0301.
#define E_MARK "e\xcc\x81"

const SplitCase kCases[] = {
    {kQwen2, "Don't STOP'LL 123", {"Don", "'t", " STOP", "'LL", " ", "1", "2", "3"}},
    {kQwen2, "caf" E_MARK "s", {"cafe", "\xcc\x81s"}},
    {kQwen2, "a  b\n\n c \n", {"a", " ", " b", "\n\n", " c", " \n"}},
    {kQwen2, "x (y)==\r\nz/\n", {"x", " (", "y", ")==\r\n", "z", "/\n"}},
    {kQwen2, "\t\tx\t\n", {"\t", "\tx", "\t\n"}},
    {{"qwen35"}, "caf" E_MARK "s 12", {"caf" E_MARK "s", " ", "1", "2"}},
    {{"qwen35"}, "!\xcc\x81?", {"!\xcc\x81", "?"}},
    {{"qwen35"}, "Don't", {"Don", "'t"}},
    {kLlama3, "12345 a1234", {"123", "45", " a", "123", "4"}},
    {kLlama3,
     "we'Ve \xe4\xbd\xa0\xe5\xa5\xbd!\n",
     {"we", "'Ve", " \xe4\xbd\xa0\xe5\xa5\xbd", "!\n"}},
    {kGpt4o, "camelCaseXMLHttp", {"camel", "Case", "XMLHttp"}},
    {kGpt4o, "Don't IT'S 12345", {"Don't", " IT'S", " ", "123", "45"}},
    {kGpt4o, "a/b//\nc", {"a", "/b", "//\n", "c"}},
    {kGpt4o, "\xc3\x84\xc3\x96\xc3\xbc\xc3\x84", {"\xc3\x84\xc3\x96\xc3\xbc", "\xc3\x84"}},
    {kGpt4o, "caf" E_MARK "X", {"caf" E_MARK, "X"}},
    {kGpt4o, "\xe4\xb8\xad\xe6\x96\x87 A", {"\xe4\xb8\xad\xe6\x96\x87", " A"}},
    {{"tekken"}, "camelCase 12", {"camel", "Case", " ", "1", "2"}},
    {{"tekken"}, "Don't /\n", {"Don", "'t", " /\n"}},
    {kGpt2, "Don't IT'S 12345", {"Don", "'t", " IT", "'", "S", " 12345"}},
    {kGpt2, "a  b\n\nc\t", {"a", " ", " b", "\n", "\n", "c", "\t"}},
    {kGpt2, "!!\n", {"!!", "\n"}},
    {kDigitsFirst, "ab123 c4", {"ab", "1", "2", "3", " c", "4"}},
    {kDigitsFirst, " 1", {" ", "1"}},
    {{"deepseek-llm"}, "Hi you\n\n1234", {"Hi", " you", "\n", "\n", "1", "2", "3", "4"}},
    {{"deepseek-llm"},
     "a\xe4\xb8\xad\xe6\x96\x87 b!",
     {"a", "\xe4\xb8\xad\xe6\x96\x87", " b", "!"}},
    {{"deepseek-llm"}, "x   ", {"x", "   "}},
    {{"deepseek-llm"}, "x   \xe4\xb8\xad", {"x", "   ", "\xe4\xb8\xad"}},
    {{"deepseek-llm"}, "f(a, b)", {"f", "(", "a", ",", " b", ")"}},
    {{"deepseek-coder"}, "Hi \xe4\xb8\xad!? 12", {"Hi", " ", "\xe4\xb8\xad", "!?", " ", "1", "2"}},
    {{"deepseek-coder"}, "a+b", {"a", "+", "b"}},
    {{"deepseek-v3"}, "12345 _abc.def", {"123", "45", " _", "abc", ".def"}},
    {{"deepseek-v3"},
     "a\xe4\xb8\xad\xe3\x81\x8b"
     "b",
     {"a", "\xe4\xb8\xad\xe3\x81\x8b", "b"}},
    {{"deepseek-v3"}, "x = y;\n  z", {"x", " =", " y", ";\n", " ", " z"}},
    {{"default", ""}, "x==1234 $5", {"x", "==", "123", "4", " ", "$", "5"}},
    {{"default", ""}, "Don't", {"Don", "'", "t"}},
};

#undef E_MARK

TEST(PreTokenizer, CutsWhereItsFamilyDoes) {
  for (const SplitCase& c : kCases) {
    for (const char* name : c.names) {
      EXPECT_EQ(split(name, c.text), c.pieces) << name << ": " << c.text;
    }
  }
}

TEST(PreTokenizer, EveryKnownNameHasAnExample) {
  std::map<std::string_view, int> n_examples;
  for (const SplitCase& c : kCases) {
    for (const char* name : c.names) ++n_examples[name];
  }
  for (const std::string_view name : PreTokenizer::names()) EXPECT_GE(n_examples[name], 2) << name;
}

TEST(PreTokenizer, ListsItsNamesSortedAndOnce) {
  const auto names = PreTokenizer::names();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_EQ(names.size(), 30u);
}

TEST(PreTokenizer, OnlyLlama3AndTekkenIgnoreMergesAndAddBos) {
  for (const std::string_view name : PreTokenizer::names()) {
    const bool expected = name == "llama-bpe" || name == "llama3" || name == "llama-v3" ||
                          name == "lfm2" || name == "tekken";
    EXPECT_EQ(PreTokenizer(name).ignores_merges(), expected) << name;
    EXPECT_EQ(PreTokenizer(name).adds_bos(), expected) << name;
  }
}

TEST(PreTokenizer, RefusesANameItDoesNotKnowAndNamesThoseItDoes) {
  try {
    PreTokenizer("qwen\n99", "some.gguf");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported_model);
    const std::string text = error.what();
    EXPECT_TRUE(
        text.starts_with("some.gguf: pre-tokenizer 'qwen?99' is not known; expected one of "))
        << text;
    for (const std::string_view name : PreTokenizer::names()) {
      EXPECT_NE(text.find(name), std::string::npos) << name;
    }
  }
  EXPECT_THROW(PreTokenizer("QWEN2"), Error);
  EXPECT_THROW(PreTokenizer(std::string(100000, 'x')), Error);
}

TEST(PreTokenizer, AByteThatIsNotUtf8IsAPieceOfItsOwn) {
  for (const std::string_view name : PreTokenizer::names()) {
    EXPECT_EQ(split(name,
                    "ab\xff\xfe"
                    "cd"),
              (Pieces{"ab", "\xff", "\xfe", "cd"}))
        << name;
    EXPECT_EQ(split(name, "\xe4\xb8"), (Pieces{"\xe4", "\xb8"})) << name;
    EXPECT_EQ(split(name,
                    "\xed\xa0\x80"
                    "a"),
              (Pieces{"\xed", "\xa0", "\x80", "a"}))
        << name;
  }
  // The text before it ends there: two spaces stay together.
  EXPECT_EQ(split("gpt-2", "a  \xff"), (Pieces{"a", "  ", "\xff"}));
}

TEST(PreTokenizer, NothingHasNoPieces) {
  for (const std::string_view name : PreTokenizer::names()) EXPECT_EQ(split(name, ""), Pieces{});
}

TEST(PreTokenizer, ThePiecesAreTheWholeTextInOrder) {
  for (const std::string_view name : PreTokenizer::names()) {
    const PreTokenizer pre(name);
    RandomTexts texts(11);
    Pieces pieces;
    for (int i = 0; i < 500; ++i) {
      const std::string text = texts.next();
      pieces.clear();
      pre.split(text, pieces);
      const char* at = text.data();
      for (const std::string_view piece : pieces) {
        ASSERT_EQ(piece.data(), at) << name << ", text " << i;
        ASSERT_FALSE(piece.empty()) << name << ", text " << i;
        at += piece.size();
      }
      ASSERT_EQ(at, text.data() + text.size()) << name << ", text " << i;
    }
  }
}

}  // namespace
}  // namespace sluice::text
