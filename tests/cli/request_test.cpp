// Requests that make no sense: exit code 1 and one line for what is wrong with a value, exit code 2
// and the flag's name for what the flags themselves get wrong.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

class Request : public testing::Test {
 protected:
  // Both commands that compute answer alike.
  void expect_refused(const Args& flags, const std::vector<std::string>& parts) {
    for (const Args& command :
         {Args{"logits"}, Args{"logits", "--json"}, Args{"run"}, Args{"run", "--json"}}) {
      EXPECT_TRUE(refused(run_sluice(command + Args{"-m", path} + flags), parts));
    }
  }
  void expect_misused(const Args& flags, const std::vector<std::string>& parts) {
    for (const char* command : {"logits", "run"}) {
      EXPECT_TRUE(misused(run_sluice(Args{command, "-m", path} + flags), parts));
    }
  }

  TempDir dir;
  const std::string path = make_model(dir / "m.gguf");
};

TEST_F(Request, WithAPromptLongerThanTheContextIsRefused) {
  expect_refused({"--tokens", "1,2,3", "-c", "2"}, {"3 tokens do not fit", "holds 2", "-c"});
  expect_refused({"--tokens", prompt_of(4097)}, {"4097 tokens do not fit", "holds 4096"});
}

TEST_F(Request, WithAnEmptyPromptIsRefused) {
  for (const char* tokens : {"", ",", " , ,"}) {
    expect_refused({"--tokens", tokens}, {"the prompt is empty", "--tokens 1,2,3"});
  }
}

TEST_F(Request, WithATokenOutsideTheVocabularyIsRefused) {
  expect_refused({"--tokens", "1,320"}, {"token id 320 is out of range", "0 to 319"});
  expect_refused({"--tokens", "-1"}, {"token id -1 is out of range", "0 to 319"});
  expect_refused({"--tokens=1,-2147483648"}, {"token id -2147483648 is out of range"});
}

TEST_F(Request, WithATokenThatIsNoNumberIsRefused) {
  expect_refused({"--tokens", "1,two,3"}, {"'two' is no token id", "expected numbers"});
  expect_refused({"--tokens", "1.5"}, {"'1.5' is no token id"});
  expect_refused({"--tokens", "0x10"}, {"'0x10' is no token id"});
  expect_refused({"--tokens", "1;2"}, {"'1;2' is no token id"});
  expect_refused({"--tokens", "99999999999"}, {"'99999999999' is no token id"});
  expect_refused({"--tokens", "1,\n2"}, {"is no token id"});
  expect_refused({"--tokens", std::string(5000, 'x')}, {"is no token id"});
}

TEST_F(Request, ForAKvTypeThatDoesNotFitTheHeadIsRefused) {
  const std::string narrow =
      make_model(dir / "narrow.gguf", {{"--head-dim", "16"}, {"--heads", "16"}});
  for (const char* flag : {"-ctk", "-ctv"}) {
    EXPECT_TRUE(refused(run_sluice({"run", "-m", narrow, "--tokens", "1", flag, "q8_0"}),
                        {"q8_0", "multiple of 32", "have 16", "f16"}));
    EXPECT_TRUE(refused(run_sluice({"logits", "-m", narrow, "--tokens", "1", flag, "q4_0"}),
                        {"q4_0", "multiple of 32", "have 16"}));
  }
  EXPECT_TRUE(succeeded(run_sluice({"logits", "-m", narrow, "--tokens", "1", "-ctk", "bf16"})));
}

TEST_F(Request, WithAWrongKvTypeNamesTheFlagAndTheTypes) {
  expect_misused({"--tokens", "1", "-ctk", "q9_0"},
                 {"--cache-type-k", "'q9_0'", "f32, f16, bf16, q8_0 or q4_0"});
  expect_misused({"--tokens", "1", "-ctv", "3"}, {"--cache-type-v", "'3'", "f32, f16"});
  expect_misused({"--tokens", "1", "-ctv", ""}, {"--cache-type-v"});
}

TEST_F(Request, WithAWrongPlaceForWeightsNamesTheFlagAndThePlaces) {
  expect_misused({"--tokens", "1", "--weights", "gone"},
                 {"--weights", "'gone'", "auto, copied or mapped"});
}

TEST_F(Request, WithANumberOutOfRangeNamesTheFlagAndTheRange) {
  expect_misused({"--tokens", "1", "--prefill-chunk", "0"}, {"--prefill-chunk", "0", "1 or more"});
  expect_misused({"--tokens", "1", "--prefill-chunk", "-3"},
                 {"--prefill-chunk", "-3", "1 or more"});
  expect_misused({"--tokens", "1", "-c", "-1"}, {"--ctx-size", "-1", "0 or more"});
  expect_misused({"--tokens", "1", "-c", "99999999999"}, {"--ctx-size", "99999999999"});
  expect_misused({"--tokens", "1", "-c", "many"}, {"--ctx-size", "many"});
  expect_misused({"--tokens", "1", "-t", "-1"}, {"--threads", "-1", "0 to 1024"});
  expect_misused({"--tokens", "1", "-t", "1025"}, {"--threads", "1025", "0 to 1024"});
  const auto run = [&](const Args& flags) {
    return run_sluice(Args{"run", "-m", path, "--tokens", "1"} + flags);
  };
  EXPECT_TRUE(misused(run({"-n", "-2"}), {"--predict", "-2", "-1 or more"}));
  EXPECT_TRUE(misused(run({"-n", "1.5"}), {"--predict", "1.5"}));
  EXPECT_TRUE(misused(run_sluice({"logits", "-m", path, "--tokens", "1", "--top", "0"}),
                      {"--top", "0", "1 or more"}));
  EXPECT_TRUE(misused(run_sluice({"synth", dir / "x.gguf", "--layers", "0"}), {"--layers", "0"}));
  EXPECT_TRUE(misused(run_sluice({"synth", dir / "x.gguf", "--seed", "x"}), {"--seed", "x"}));
}

TEST_F(Request, WithFlagsThatExcludeEachOtherNamesBoth) {
  EXPECT_TRUE(misused(run_sluice({"logits", "-m", path, "--tokens", "1", "--top", "3", "--all"}),
                      {"--top", "--all"}));
}

TEST_F(Request, WithAnUnknownFlagNamesIt) {
  expect_misused({"--tokens", "1", "--temperatures", "1"}, {"--temperatures"});
  EXPECT_TRUE(misused(run_sluice({"logits", "-m", path, "--tokens", "1", "extra"}), {"extra"}));
  EXPECT_TRUE(misused(run_sluice({"inspect", path, "--verbosely"}),
                      {"--verbosely", "see sluice inspect --help"}));
  EXPECT_TRUE(misused(run_sluice({"--verbosely"}), {"--verbosely"}));
  EXPECT_TRUE(misused(run_sluice({"quantize", path, path, "F16", "more"}), {"more"}));
}

TEST_F(Request, WithAFlagMissingNamesIt) {
  EXPECT_TRUE(misused(run_sluice({"logits", "--tokens", "1"}), {"sluice logits needs a model"}));
  EXPECT_TRUE(misused(run_sluice({"run", "-m", path, "--tokens"}), {"--tokens"}));
  EXPECT_TRUE(misused(run_sluice({"run", "--tokens", "1", "-m"}), {"--model"}));
  EXPECT_TRUE(misused(run_sluice({"inspect"}), {"sluice inspect needs a model"}));
  EXPECT_TRUE(misused(run_sluice({"quantize", path, "x.gguf"}), {"type"}));
  EXPECT_TRUE(misused(run_sluice({"synth"}), {"output"}));
}

TEST_F(Request, WithoutACommandOrForAnUnknownOneSaysSo) {
  EXPECT_TRUE(misused(run_sluice({}), {"no command", "sluice run", "--help"}));
  EXPECT_TRUE(misused(run_sluice({"dance"}), {"'dance'", "--help"}));
  EXPECT_TRUE(misused(run_sluice({"two\nlines"}), {"'two?lines'"}));
  EXPECT_TRUE(misused(run_sluice({""}), {"--help"}));
}

TEST_F(Request, AskedForTwiceIsRefused) {
  expect_misused({"-m", path, "--tokens", "1"}, {"--model is given twice"});
}

}  // namespace
}  // namespace sluice::test
