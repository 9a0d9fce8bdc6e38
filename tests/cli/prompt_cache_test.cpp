// sluice run --prompt-cache: what the next run finds, that its answer stays the same, and what
// becomes of files that cannot be used.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class PromptCache : public testing::Test {
 protected:
  Args command(const Args& flags, const std::string& of) const {
    return Args{"run", "-m", of, "--temp", "0", "-n", "8", "--raw"} + flags;
  }
  Outcome run(const std::string& prompt, const Args& flags = {}) const {
    return run_sluice(command(Args{"-p", prompt, "--prompt-cache", file} + flags, model));
  }
  json run_json(const std::string& prompt, const Args& flags = {}) const {
    const Outcome outcome = run(prompt, flags + Args{"--json"});
    EXPECT_TRUE(succeeded(outcome));
    return json::parse(outcome.out);
  }
  // What the model says to it without any file.
  json never(const std::string& prompt) const {
    return json::parse(output_of(command({"-p", prompt, "--json"}, model))).at("tokens");
  }
  static void expect_counts(const json& got, int n_prompt, int n_found, int n_saved) {
    const json& cache = got.at("prompt_cache");
    EXPECT_EQ(cache.at("n_prompt"), n_prompt) << got;
    EXPECT_EQ(cache.at("n_found"), n_found) << got;
    EXPECT_EQ(cache.at("n_saved"), n_saved) << got;
    EXPECT_EQ(got.at("stats").at("n_prefill_tokens"), n_prompt - n_found) << got;
  }
  // A run that says so, answers as without a file, and has left these bytes.
  void expect_warned(const std::vector<std::string>& parts, bool stays) const {
    const std::string before = fs::is_regular_file(file) ? read_file(file) : "";
    const Outcome outcome = run(text);
    EXPECT_TRUE(succeeded(outcome));
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome;
    }
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 3) << outcome;  // warning, note, speed
    EXPECT_EQ(outcome.out, run_sluice(command({"-p", text}, model)).out);
    if (!fs::is_regular_file(file)) return;
    EXPECT_EQ(read_file(file) == before, stays) << parts.front();
    if (!stays) expect_counts(run_json(text), n_text, n_text - 1, 0);
  }

  TempDir dir;
  const std::string model = make_model(dir / "m.gguf", {{"--layers", "2"}});
  const std::string file = dir / "cache";
  const std::string text = std::string(40, 'a') + std::string(50, 'b');
  const int n_text = static_cast<int>(never_counted());

 private:
  size_t never_counted() const {
    const json got = json::parse(output_of(command({"-p", text, "--json"}, model)));
    return got.at("stats").at("n_prefill_tokens");
  }
};

TEST_F(PromptCache, HoldsWhatTheNextRunNeedNotCompute) {
  const json first = run_json(text);
  expect_counts(first, n_text, 0, n_text - 1);
  EXPECT_EQ(first.at("tokens"), never(text));
  const json again = run_json(text);
  expect_counts(again, n_text, n_text - 1, 0);
  EXPECT_EQ(again.at("tokens"), first.at("tokens"));

  // A longer one takes all of it, and one that differs takes what they share.
  const std::string longer = text + std::string(10, 'c');
  const json more = run_json(longer);
  expect_counts(more, n_text + 10, n_text - 1, n_text + 9);
  EXPECT_EQ(more.at("tokens"), never(longer));
  const std::string other = text.substr(0, 60) + "xyz";
  const json shared = run_json(other);
  expect_counts(shared, n_text - 27, n_text - 30, n_text - 28);
  EXPECT_EQ(shared.at("tokens"), never(other));
}

TEST_F(PromptCache, SaysWhatItFoundInOneLine) {
  const Outcome first = run(text), again = run(text);
  EXPECT_NE(first.err.find(cat("0 of ", n_text, " prompt tokens were in ", file, "; now it holds ",
                               n_text - 1, "\n")),
            std::string::npos)
      << first;
  EXPECT_NE(again.err.find(cat(n_text - 1, " of ", n_text, " prompt tokens were in ", file,
                               "; it stays as it is\n")),
            std::string::npos)
      << again;
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(std::ranges::count(again.err, '\n'), 2) << again;
}

// Its state is that of the file's end.
TEST_F(PromptCache, OfARecurrentModelIsUsedAsAWholeOrNotAtAll) {
  const std::string hybrid =
      make_model(dir / "h.gguf", {{"--arch", "qwen35moe"}, {"--layers", "4"}});
  const auto run_hybrid = [&](const std::string& prompt, const Args& flags) {
    const Outcome outcome = run_sluice(command(Args{"-p", prompt, "--json"} + flags, hybrid));
    EXPECT_TRUE(succeeded(outcome));
    return std::pair(json::parse(outcome.out), outcome.err);
  };
  const Args cached = {"--prompt-cache", file};
  run_hybrid(text, cached);
  for (const std::string& prompt : {text, text + "more", text.substr(0, 60)}) {
    fs::copy_file(file, dir / "copy", fs::copy_options::overwrite_existing);
    const auto [got, err] = run_hybrid(prompt, {"--prompt-cache", dir / "copy"});
    const bool is_whole = prompt.starts_with(text);
    EXPECT_EQ(got.at("prompt_cache").at("n_found"), is_whole ? n_text - 1 : 0) << err;
    EXPECT_EQ(err.find("begin alike") == std::string::npos, is_whole) << err;
    EXPECT_EQ(got.at("tokens"), run_hybrid(prompt, {}).first.at("tokens"));
  }
}

TEST_F(PromptCache, IsNotWrittenWhereItIsOnlyToBeRead) {
  run(text, {"--prompt-cache-ro"});
  EXPECT_FALSE(fs::exists(file));
  run(text);
  const std::string before = read_file(file);
  expect_counts(run_json(text + "more", {"--prompt-cache-ro"}), n_text + 4, n_text - 1, 0);
  EXPECT_EQ(read_file(file), before);
  EXPECT_TRUE(misused(run_sluice(command({"-p", "x", "--prompt-cache-ro"}, model)),
                      {"--prompt-cache-ro", "--prompt-cache"}));
}

TEST_F(PromptCache, ThatCannotBeUsedIsToldAndOnlyADamagedOneIsReplaced) {
  run(text);
  const std::string good = read_file(file);
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& bad : {good.substr(0, good.size() / 2), flipped}) {
    write_file(file, bad);
    expect_warned({"sluice: warning: ", file, "the file is replaced"}, /*stays=*/false);
  }
  write_file(file, "my diary\n");
  expect_warned({"no text that sluice has saved", "the file stays as it is"}, true);
  write_file(file, "");
  expect_warned({"no text that sluice has saved", "the file stays as it is"}, true);
  const std::string other = make_model(dir / "other.gguf", {{"--layers", "1"}});
  EXPECT_TRUE(
      succeeded(run_sluice(command({"-p", text, "--prompt-cache", dir / "of-other"}, other))));
  fs::copy_file(dir / "of-other", file, fs::copy_options::overwrite_existing);
  expect_warned({"another model", "the file stays as it is"}, true);
  fs::remove(file);
  fs::create_directory(file);
  expect_warned({"no plain file", "the file stays as it is"}, true);
}

TEST_F(PromptCache, ThatCannotBeWrittenIsToldAndTheAnswerComes) {
  const Outcome outcome =
      run_sluice(command({"-p", text, "--prompt-cache", dir / "no/such/folder"}, model));
  EXPECT_TRUE(succeeded(outcome));
  EXPECT_EQ(outcome.out, run_sluice(command({"-p", text}, model)).out);
  EXPECT_NE(outcome.err.find("cannot be created"), std::string::npos) << outcome;
  EXPECT_NE(outcome.err.find("it could not be written"), std::string::npos) << outcome;
}

TEST_F(PromptCache, OfAChatHoldsTheConversation) {
  const Args chat = {"run", "-m", model,     "--temp",         "0",
                     "-n",  "8",  "--lines", "--prompt-cache", file};
  const Outcome first = run_sluice_on(cat("hello there\n/save ", dir / "c.json", "\n"), chat);
  ASSERT_TRUE(succeeded(first));
  ASSERT_TRUE(fs::exists(file));
  const std::string next = cat("/load ", dir / "c.json", "\nand now?\n/stats\n");
  const Outcome with = run_sluice_on(next, chat);
  fs::remove(file);
  const Outcome without = run_sluice_on(next, chat);
  EXPECT_EQ(with.out.substr(0, with.out.find("conversation:")),
            without.out.substr(0, without.out.find("conversation:")));
  const auto n_computed = [](const Outcome& outcome) {
    const size_t at = outcome.err.find('[');
    return at == std::string::npos ? -1 : std::stoi(outcome.err.substr(at + 1));
  };
  EXPECT_GT(n_computed(with), 0) << with;
  EXPECT_LT(n_computed(with), n_computed(without) - 10) << with << without;
}

}  // namespace
}  // namespace sluice::test
