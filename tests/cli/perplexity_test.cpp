// sluice perplexity: the figure is that of the model's own log-probabilities, and what it cannot
// score it says.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

class Perplexity : public testing::Test {
 protected:
  Outcome run(const Args& flags) const {
    return run_sluice(Args{"perplexity", "-m", model} + flags);
  }
  json score(const Args& flags) const {
    return json::parse(output_of(Args{"perplexity", "-m", model, "--json"} + flags));
  }
  std::string write(const std::string& text) const {
    write_file(dir / "text", text);
    return dir / "text";
  }

  // What the header of the command says, by way of `sluice logits`: of each chunk the second half,
  // without the token behind its end.
  double expected(const std::vector<int>& tokens, size_t n_ctx, int bos = -1) const {
    double sum = 0.0;
    size_t n = 0;
    for (size_t begin = 0; begin + n_ctx <= tokens.size(); begin += n_ctx) {
      std::string ids;
      for (size_t i = 0; i < n_ctx; ++i) {
        ids += cat(i ? "," : "", i == 0 && bos >= 0 ? bos : tokens[begin + i]);
      }
      const LogProbs rows = all_logprobs(model, ids);
      for (size_t i = n_ctx / 2; i + 1 < n_ctx; ++i) {
        sum -= rows.at(i).at(static_cast<size_t>(tokens[begin + i + 1]));
        ++n;
      }
    }
    return std::exp(sum / static_cast<double>(n));
  }

  TempDir dir;
  std::string model = make_model(dir / "m.gguf");
};

// No "he" and no " t", which the vocabulary merges.
std::string text_of(size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += static_cast<char>('A' + (i * i + 3 * i) % 26);
  return text;
}

std::vector<int> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST_F(Perplexity, IsThatOfTheLogProbabilities) {
  const std::string text = text_of(100);
  for (const int n_ctx : {16, 17, 50}) {
    const json got = score({"-f", write(text), "-c", std::to_string(n_ctx)});
    const size_t n_chunks = 100 / static_cast<size_t>(n_ctx);
    EXPECT_NEAR(
        got.at("perplexity").get<double>() / expected(bytes_of(text), static_cast<size_t>(n_ctx)),
        1.0, 1e-6)
        << n_ctx;
    EXPECT_EQ(got.at("n_chunks"), n_chunks);
    EXPECT_EQ(got.at("n_ctx"), n_ctx);
    EXPECT_EQ(got.at("n_scored"), static_cast<int>(n_chunks) * (n_ctx - n_ctx / 2 - 1));
    EXPECT_GT(got.at("error").get<double>(), 0.0);
  }
}

TEST_F(Perplexity, BeginsEveryChunkWithBosWhereTheModelWantsIt) {
  EditableModel edited(model);
  edited.set("tokenizer.ggml.add_bos_token", true);
  edited.set("tokenizer.ggml.bos_token_id", uint32_t{256});
  model = edited.write(dir / "edited.gguf");
  std::vector<int> tokens = bytes_of(text_of(63));
  tokens.insert(tokens.begin(), 256);
  const json got = score({"-f", write(text_of(63)), "-c", "32"});
  EXPECT_EQ(got.at("n_chunks"), 2);
  EXPECT_NEAR(got.at("perplexity").get<double>() / expected(tokens, 32, 256), 1.0, 1e-6);
}

TEST_F(Perplexity, TakesControlTokensForText) {
  const json got = score({"-f", write("<|im_end|><|im_end|>"), "-c", "20"});
  EXPECT_EQ(got.at("n_chunks"), 1);  // 20 bytes, not 2 tokens
}

TEST_F(Perplexity, ReadsStandardInputAndDoesNotDependOnTheChunksOfPrefill) {
  const std::string text = text_of(64);
  const json whole = score({"-f", write(text), "-c", "64"});
  const json piped = json::parse(
      run_sluice_on(text, {"perplexity", "-m", model, "--json", "-f", "-", "-c", "64"}).out);
  EXPECT_EQ(piped, whole);
  EXPECT_EQ(score({"-f", write(text), "-c", "64", "--prefill-chunk", "7"}), whole);
}

TEST_F(Perplexity, PrintsOneLineForPeople) {
  const Outcome outcome = run({"-f", write(text_of(64)), "-c", "32"});
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_TRUE(outcome.out.starts_with("perplexity ")) << outcome.out;
  EXPECT_NE(outcome.out.find(" +/- "), std::string::npos) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with(" (30 tokens in 2 chunks of 32)\n")) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Perplexity, NeedsNoChatTemplate) {
  EditableModel edited(model);
  edited.set("tokenizer.chat_template", std::string("{% broken"));
  model = edited.write(dir / "edited.gguf");
  EXPECT_TRUE(succeeded(run({"-f", write(text_of(64)), "-c", "32"})));
}

TEST_F(Perplexity, OfWhatCannotBeScoredIsRefused) {
  EXPECT_TRUE(refused(run({"-f", write("short")}),
                      {"5 tokens in chunks of 512; expected a longer text, or a smaller context"}));
  EXPECT_TRUE(refused(run({"-f", write("")}), {"0 tokens in chunks of 512"}));
  EXPECT_TRUE(refused(run({"-f", write(text_of(64)), "-c", "3"}), {"chunks of 3", "at least 4"}));
  EXPECT_TRUE(refused(run({"-f", dir / "none"}), {"none cannot be opened (No such file"}));
  EXPECT_TRUE(refused(run({"-f", dir.path()}), {"cannot be read (Is a directory)"}));
  EXPECT_TRUE(misused(run({}), {"--file", "is required"}));
}

}  // namespace
}  // namespace sluice::test
