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
  options.environment = {{"HOME", home / ""},
                         {"XDG_DATA_HOME", ""},
                         {"SLUICE_MODELS", folders},
                         {"OLLAMA_MODELS", ""},
                         {"HF_HUB_OFFLINE", "1"}};
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

// As Ollama keeps them: a manifest names the blob that is the model.
class OfOllama : public testing::Test {
 protected:
  void add(const std::string& below, const std::string& layers) {
    const std::filesystem::path manifest = folder + "/manifests/" + below;
    std::filesystem::create_directories(manifest.parent_path());
    write_file(manifest.string(), R"({"schemaVersion": 2, "layers": )" + layers + "}");
  }
  static std::string model_layer(const std::string& digest) {
    return R"([{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:11"},
               {"mediaType": "application/vnd.ollama.image.model", "digest": ")" +
           digest + R"("}])";
  }
  void SetUp() override {
    std::filesystem::create_directories(folder + "/blobs");
    make_model(folder + "/blobs/sha256-ab", {{"--layers", "5"}});
    add("registry.example/library/tiny/latest", model_layer("sha256:ab"));
    add("registry.example/library/tiny/1b", model_layer("sha256:ab"));
    add("registry.example/someone/tuned/latest", model_layer("sha256:ab"));
    add("hub.example/user/repo/Q4_K_M", model_layer("sha256:ab"));
  }

  TempDir home;
  const std::string folder = home / ".ollama/models";
};

TEST_F(OfOllama, ModelsAreFoundByTheNamesItShows) {
  const std::string listed = run_in(home, {"list", "--names"}).out;
  for (const char* name :
       {"tiny:latest\n", "tiny:1b\n", "someone/tuned:latest\n", "hub.example/user/repo:Q4_K_M\n"}) {
    EXPECT_NE(listed.find(name), std::string::npos) << name << listed;
  }
  for (const char* name : {"tiny", "tiny:latest", "tiny:1b", "someone/tuned"}) {
    const Outcome outcome = run_in(home, {"inspect", name});
    EXPECT_NE(outcome.out.find("layers        5"), std::string::npos) << name << outcome;
  }
  EXPECT_TRUE(succeeded(run_in(home, {"run", "tiny", "--tokens", "1,2", "-n", "2"})));
  EXPECT_TRUE(refused(run_in(home, {"inspect", "tiny:7b"}), {"there is no model 'tiny:7b'"}));
}

TEST_F(OfOllama, ModelsAreLeftToIt) {
  EXPECT_TRUE(refused(run_in(home, {"rm", "tiny:1b"}), {"tiny:1b", "ollama rm"}));
  EXPECT_TRUE(std::filesystem::exists(folder + "/blobs/sha256-ab"));
}

TEST_F(OfOllama, ManifestsThatAreNoneArePassedOver) {
  add("registry.example/library/gone/latest", model_layer("sha256:cd"));
  add("registry.example/library/outside/latest", model_layer("sha256:../../../m"));
  add("registry.example/library/odd/latest", R"([1, {"digest": 7}, {"mediaType": null}])");
  add("registry.example/library/broken/latest", "[");
  const Outcome outcome = run_in(home, {"list", "--names"});
  ASSERT_TRUE(succeeded(outcome));
  for (const char* name : {"gone", "outside", "odd", "broken"}) {
    EXPECT_EQ(outcome.out.find(name), std::string::npos) << outcome;
  }
  EXPECT_NE(outcome.out.find("tiny:1b\n"), std::string::npos) << outcome;
}

TEST(OfLmStudio, ModelsAreFoundByTheNamesOfTheHub) {
  const TempDir home;
  const std::string repo = home / ".lmstudio/models/user/repo-GGUF";
  std::filesystem::create_directories(repo);
  make_model(repo + "/m-Q4_K_M.gguf", {{"--layers", "6"}});
  make_model(repo + "/m-Q8_0.gguf", {{"--layers", "7"}});
  const auto layers = [&](const Args& name) {
    const Outcome outcome = run_in(home, Args{"inspect"} + name);
    EXPECT_TRUE(succeeded(outcome));
    return outcome.out.substr(outcome.out.find("layers") + 14, 1);
  };
  EXPECT_EQ(layers({"user/repo-GGUF:Q4_K_M"}), "6");
  EXPECT_EQ(layers({"user/repo-GGUF:Q8_0"}), "7");
  EXPECT_EQ(layers({"-hf", "user/repo-GGUF"}), "6") << "without asking the hub";
  EXPECT_EQ(layers({"-hf", "user/repo-GGUF:q8_0"}), "7");
  const std::string listed = run_in(home, {"list"}).out;
  EXPECT_NE(listed.find("user/repo-GGUF:Q8_0"), std::string::npos) << listed;
  EXPECT_TRUE(refused(run_in(home, {"rm", "user/repo-GGUF:Q8_0"}), {"LM Studio"}));
  EXPECT_TRUE(std::filesystem::exists(repo + "/m-Q8_0.gguf"));
}

}  // namespace
}  // namespace sluice::test
