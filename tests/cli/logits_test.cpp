// sluice logits: the form of its output, and that nothing which must not matter does: how the
// prompt is cut into chunks, the number of threads, the number of files.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

class Logits : public testing::Test {
 protected:
  std::string print(const Args& flags) {
    return output_of(Args{"logits", "-m", path, "--tokens", prompt_of(70)} + flags);
  }

  TempDir dir;
  const std::string path = make_model(dir / "m.gguf", {{"--layers", "2"}, {"--type", "Q4_K_M"}});
};

TEST_F(Logits, JsonHasAnObjectForEachTokenAndTheBestCandidatesFirst) {
  const auto positions = logits_of(path, "5, 0,319 7", {"--top", "3"});
  const std::vector<int> tokens = {5, 0, 319, 7};
  ASSERT_EQ(positions.size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(positions[i].pos, static_cast<int>(i));
    EXPECT_EQ(positions[i].token, tokens[i]);
    ASSERT_EQ(positions[i].top.size(), 3u);
    EXPECT_GE(positions[i].top[0].second, positions[i].top[1].second);
    EXPECT_GE(positions[i].top[1].second, positions[i].top[2].second);
  }
}

TEST_F(Logits, ShowsTenCandidatesUnlessTold) {
  EXPECT_EQ(logits_of(path, "1").at(0).top.size(), 10u);
  EXPECT_EQ(logits_of(path, "1", {"--top", "1"}).at(0).top.size(), 1u);
  EXPECT_EQ(logits_of(path, "1", {"--top", "100000"}).at(0).top.size(), size_t{kVocab});
}

TEST_F(Logits, OfTheWholeVocabularyAreProbabilities) {
  for (const Position& position : logits_of(path, prompt_of(9), {"--all"})) {
    ASSERT_EQ(position.top.size(), size_t{kVocab});
    std::vector<bool> seen(kVocab);
    double sum = 0.0;
    double before = 0.0;
    for (const auto& [id, logprob] : position.top) {
      ASSERT_TRUE(id >= 0 && id < kVocab && !seen[static_cast<size_t>(id)])
          << "id " << id << " at position " << position.pos;
      seen[static_cast<size_t>(id)] = true;
      EXPECT_LE(logprob, before) << "id " << id << " at position " << position.pos;
      before = logprob;
      sum += std::exp(logprob);
    }
    EXPECT_NEAR(sum, 1.0, 1e-5) << "at position " << position.pos;
  }
}

TEST_F(Logits, TextSaysTheSameAsJson) {
  std::istringstream text(output_of({"logits", "-m", path, "--tokens", "9,8", "--top", "4"}));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "  pos    token   next:logprob, best first");
  for (const Position& position : logits_of(path, "9,8", {"--top", "4"})) {
    int pos = -1;
    int token = -1;
    text >> pos >> token;
    EXPECT_EQ(pos, position.pos);
    EXPECT_EQ(token, position.token);
    for (const auto& [id, logprob] : position.top) {
      int shown_id = -1;
      char colon = 0;
      double shown = 0.0;
      text >> shown_id >> colon >> shown;
      EXPECT_EQ(shown_id, id);
      EXPECT_NEAR(shown, logprob, 0.5e-4 + 1e-9);
    }
  }
  EXPECT_TRUE(std::getline(text, line) && line.empty());
  EXPECT_FALSE(std::getline(text, line)) << line;
}

// 70 tokens: more than a page of the cache, and no multiple of any chunk.
TEST_F(Logits, AreTheSameToTheBitInChunksOfAnySize) {
  const std::string whole = print({"--json", "--all"});
  const std::string text = print({});
  for (const char* chunk : {"1", "7", "64", "70", "4096"}) {
    EXPECT_TRUE(print({"--json", "--all", "--prefill-chunk", chunk}) == whole)
        << "other numbers with --prefill-chunk " << chunk;
    EXPECT_TRUE(print({"--prefill-chunk", chunk}) == text)
        << "another text with --prefill-chunk " << chunk;
  }
}

TEST_F(Logits, AreTheSameToTheBitOnAnyNumberOfThreads) {
  const std::string one = print({"--json", "--all", "-t", "1"});
  for (const char* n : {"2", "3", "0"}) {
    EXPECT_TRUE(print({"--json", "--all", "-t", n}) == one) << "other numbers with -t " << n;
  }
}

TEST_F(Logits, DoNotDependOnTheSizeOfTheContext) {
  const std::string enough = print({"--json", "--all", "-c", "70"});
  EXPECT_TRUE(print({"--json", "--all"}) == enough);
  EXPECT_TRUE(print({"--json", "--all", "-c", "1000"}) == enough);
}

TEST_F(Logits, DependOnEveryEarlierToken) {
  const LogProbs a = all_logprobs(path, "1,2,3,4");
  const LogProbs b = all_logprobs(path, "1,9,3,4");
  EXPECT_EQ(a[0], b[0]);
  for (size_t pos = 1; pos < 4; ++pos) EXPECT_NE(a[pos], b[pos]) << "at position " << pos;
}

TEST_F(Logits, OfASplitModelAreThoseOfTheWholeOne) {
  const auto [first, second] = split_in_two(EditableModel(path), dir / "s");
  const Args flags = {"--tokens", prompt_of(9), "--all", "--json"};
  EXPECT_TRUE(output_of(Args{"logits", "-m", first} + flags) ==
              output_of(Args{"logits", "-m", path} + flags));
  const auto info = nlohmann::json::parse(output_of({"inspect", first, "--json"}));
  EXPECT_EQ(info.at("n_shards"), 2);

  EXPECT_TRUE(refused(run_sluice(Args{"logits", "-m", second} + flags),
                      {second, "shard 2 of 2", "expected the first shard", first}));
  std::filesystem::remove(second);
  EXPECT_TRUE(refused(run_sluice(Args{"logits", "-m", first} + flags),
                      {first, "shard 2 of 2 is missing", second}));
}

// The divergence from an F32 cache, for keys and values apart. The bounds are 1.3 times what the
// two architectures gave at most: f16 1.7e-8, bf16 1.0e-6, q8_0 1.1e-5, q4_0 3.3e-3; two unrelated
// models differ by 0.6. All experts are used: a token that changes its expert would hide the
// rounding. A tenth of the bound must be there, or the flag did nothing.
struct KvCase {
  const char* type;
  double bound;
};

class KvTypes : public testing::TestWithParam<KvCase> {};

TEST_P(KvTypes, ChangeTheLogitsOnlyALittle) {
  const auto [type, bound] = GetParam();
  const TempDir dir;
  for (const char* architecture : {"qwen3moe", "llama"}) {
    const std::string path =
        make_model(dir / "m.gguf", {{"--arch", architecture}, {"--experts-used", "4"}});
    const LogProbs exact = all_logprobs(path, prompt_of(24), {"-ctk", "f32", "-ctv", "f32"});
    for (const Args& flags : {Args{"-ctk", type, "-ctv", "f32"},
                              Args{"--cache-type-k", "f32", "--cache-type-v", type}}) {
      const double divergence = mean_divergence(exact, all_logprobs(path, prompt_of(24), flags));
      EXPECT_LE(divergence, bound) << architecture << " with " << testing::PrintToString(flags);
      EXPECT_GE(divergence, bound / 10)
          << architecture << " with " << testing::PrintToString(flags);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KvTypes,
                         testing::Values(KvCase{"f16", 2.3e-8}, KvCase{"bf16", 1.35e-6},
                                         KvCase{"q8_0", 1.4e-5}, KvCase{"q4_0", 4.4e-3}),
                         [](const auto& test) { return std::string(test.param.type); });

TEST_F(Logits, UseACacheOfF16UnlessToldOtherwise) {
  const std::string usual = print({"--json", "--all"});
  EXPECT_TRUE(print({"--json", "--all", "-ctk", "f16", "-ctv", "F16"}) == usual);
  EXPECT_FALSE(print({"--json", "--all", "-ctk", "f32", "-ctv", "f32"}) == usual);
}

}  // namespace
}  // namespace sluice::test
