// Models by name: the default, the shipped ones, the user's folders, and what is not there.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/models.h"
#include "cli/program.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

Outcome run_in(const TempDir& home, const Args& args, const std::string& folders = "") {
  ProcessOptions options;
  options.environment = {{"HOME", home / ""}, {"XDG_DATA_HOME", ""}, {"SLUICE_MODELS", folders}};
  return run_sluice(args, options);
}

TEST(Registry, WithoutAModelTheDemoAnswers) {
  const TempDir home;
  const Outcome outcome = run_in(home, {"run", "-p", "What is 17 + 25?", "--temp", "0"});
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_EQ(outcome.out, "17 + 25 = 42.\n");
}

TEST(Registry, FindsModelsOfTheUserBeforeTheShippedOnes) {
  const TempDir home, folder;
  const std::string data = home / ".local/share/sluice/models";
  std::filesystem::create_directories(data);
  make_model(data + "/mine.gguf", {{"--layers", "1"}});
  make_model(folder / "split-00001-of-00002.gguf", {{"--layers", "2"}});
  make_model(folder / "demo-attn.gguf", {{"--layers", "3"}});
  const auto layers = [&](const std::string& name) {
    const Outcome outcome = run_in(home, {"inspect", name}, cat("/nowhere:", folder / ""));
    EXPECT_TRUE(succeeded(outcome)) << name;
    const size_t at = outcome.out.find("layers");
    return outcome.out.substr(at, outcome.out.find(" of", at) - at);
  };
  EXPECT_EQ(layers("mine"), "layers        1");
  EXPECT_EQ(layers("demo-attn"), "layers        3");
  EXPECT_EQ(layers("split"), "layers        2");
}

TEST(Registry, SaysWhichNamesThereAre) {
  const TempDir home;
  EXPECT_TRUE(refused(run_in(home, {"run", "-m", "nosuch", "-p", "x"}),
                      {"no model 'nosuch'", "demo-attn, demo-hybrid"}));
  EXPECT_TRUE(refused(run_in(home, {"inspect", "nosuch.gguf"}), {"nosuch.gguf"}));
}

}  // namespace
}  // namespace sluice::test
