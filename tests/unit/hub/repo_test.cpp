// Names of repositories, listings, and the file that a name means.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/repo_files.h"
#include "hub/repo_name.h"

namespace sluice::hub::test {
namespace {

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RepoName, IsReadInEveryFormPeopleType) {
  const std::pair<const char*, const char*> kNames[] = {
      {"user/repo", "user/repo"},
      {"user/repo:Q4_K_M", "user/repo:Q4_K_M"},
      {"hf.co/user/repo:q8_0", "user/repo:q8_0"},
      {"https://hf.co/user/repo", "user/repo"},
      {"https://huggingface.co/user/repo/", "user/repo"},
      {"https://huggingface.co/user/repo/tree/main", "user/repo"},
      {"https://huggingface.co/user/repo/blob/main/a/b-Q4_0.gguf", "user/repo/a/b-Q4_0.gguf"},
      {"user/repo/x.gguf", "user/repo/x.gguf"},
      {"Qwen/Qwen2.5-0.5B_x-GGUF:UD-Q4_K_XL", "Qwen/Qwen2.5-0.5B_x-GGUF:UD-Q4_K_XL"}};
  for (const auto& [typed, read] : kNames) EXPECT_EQ(parse_repo_name(typed).text(), read) << typed;
}

TEST(RepoName, IsRefusedWhereItIsNone) {
  for (const char* typed :
       {"", "repo", "/repo", "user/", "user/repo:", "../repo", "user/..", "user/repo/../x", "a b/c",
        "user/repo:a b", "user/repo//x", "-u/r", "user/repo/.hidden"}) {
    EXPECT_NE(error_of([&] { parse_repo_name(typed); }).find("expected user/repo"),
              std::string::npos)
        << typed;
  }
}

TEST(RepoName, IsNoOtherModelsName) {
  for (const char* name : {"demo-attn", "user/repo", "models/x.gguf", "https://example.com/x/y",
                           "/hf.co/user/repo", "huggingface.com/user/repo"}) {
    EXPECT_FALSE(parse_hub_name(name)) << name;
  }
  EXPECT_EQ(parse_hub_name("hf.co/user/repo")->id(), "user/repo");
  EXPECT_THROW(parse_hub_name("hf.co/user"), Error);
}

TEST(Paths, OfAListingStayInTheirFolder) {
  for (const char* path : {"a.gguf", "Q4/a b.gguf", "x/y/z-00001-of-00002.gguf"}) {
    EXPECT_TRUE(is_safe_path(path)) << path;
  }
  for (const char* path :
       {"", "/etc/passwd", "../a", "a/../b", "a//b", "a/", ".hidden", "a/.b", "a\nb", "a\\b"}) {
    EXPECT_FALSE(is_safe_path(path)) << path;
  }
}

TEST(Listing, GivesFilesWithSizesAndHashes) {
  const std::string hash(64, 'a');
  const auto files = parse_listing(
      R"([{"type": "directory", "path": "Q4"}, {"type": "file", "path": "README.md", "size": 10},
          {"type": "file", "path": "../evil.gguf", "size": 1},
          {"type": "file", "path": "Q4/m.gguf", "size": 134, "lfs": {"oid": ")" +
          hash + R"(", "size": 5000, "pointerSize": 134}}])",
      "here");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1].path, "Q4/m.gguf");
  EXPECT_EQ(files[1].n_bytes, 5000u);
  EXPECT_EQ(files[1].sha256, hash);
  EXPECT_EQ(files[0].sha256, "");
}

TEST(Listing, IsRefusedWhereItIsNone) {
  for (const char* text :
       {"", "<html>", "{}", "[{\"type\": 1}]", "[{\"type\": \"file\", \"path\": []}]",
        "[{\"path\": \"a\", \"size\": \"x\"}]"}) {
    EXPECT_NE(error_of([&] { parse_listing(text, "here"); }).find("here: "), std::string::npos)
        << text;
  }
}

std::vector<RepoModel> models(std::initializer_list<const char*> paths) {
  std::vector<RepoFile> files;
  for (const char* path : paths) files.push_back({path, 1, ""});
  return models_of(files);
}

TEST(Models, AreFilesOrAllTheirShards) {
  const auto found =
      models({"b-00002-of-00002.gguf", "a-Q4_0.gguf", "mmproj-F16.gguf", "x.txt",
              "b-00001-of-00002.gguf", "c-00001-of-00003.gguf", "b.gguf", "a-imatrix.gguf"});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].stem, "a-Q4_0");
  EXPECT_EQ(found[1].files.size(), 1u);
  EXPECT_EQ(found[2].files.size(), 2u);
  EXPECT_EQ(found[2].files[0].path, "b-00001-of-00002.gguf");
  EXPECT_TRUE(found[2].is_whole);
  EXPECT_FALSE(found[3].is_whole);
}

TEST(Quant, IsFoundInAFilesName) {
  const std::pair<const char*, const char*> kNames[] = {{"dir/Qwen3-30B-A3B-Q4_K_M", "Q4_K_M"},
                                                        {"Qwen3-30B-A3B-UD-Q4_K_XL", "UD-Q4_K_XL"},
                                                        {"qwen2.5-0.5b-instruct-q8_0", "q8_0"},
                                                        {"llama.IQ3_XXS", "IQ3_XXS"},
                                                        {"gpt-oss-20b-mxfp4", "mxfp4"},
                                                        {"m-BF16", "BF16"},
                                                        {"demo-attn", "demo-attn"},
                                                        {"Q8_0/model-Q4_0-v2", "Q4_0"}};
  for (const auto& [stem, quant] : kNames) EXPECT_EQ(quant_of(stem), quant) << stem;
}

TEST(Choice, FollowsTheQuantOrTakesTheUsualOne) {
  const auto all =
      models({"m-Q2_K.gguf", "m-Q4_K_S.gguf", "m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf", "m-Q8_0.gguf",
              "Q3_K_M/m-Q3_K_M-00001-of-00002.gguf", "Q3_K_M/m-Q3_K_M-00002-of-00002.gguf"});
  const auto chosen = [&](RepoName name) { return choose_model(all, name).stem; };
  EXPECT_EQ(chosen({"u", "r"}), "m-Q4_K_M");
  EXPECT_EQ(chosen({"u", "r", "q8_0"}), "m-Q8_0");
  EXPECT_EQ(chosen({"u", "r", "Q4_K"}), "m-Q4_K_M");
  EXPECT_EQ(chosen({"u", "r", "Q4_K_XL"}), "m-UD-Q4_K_XL");
  EXPECT_EQ(chosen({"u", "r", "q3_k_m"}), "Q3_K_M/m-Q3_K_M");
  EXPECT_EQ(chosen({"u", "r", "", "m-Q2_K.gguf"}), "m-Q2_K");
  EXPECT_EQ(choose_model(models({"b.gguf", "a.gguf"}), {"u", "r"}).stem, "a");
}

TEST(Choice, SaysWhatThereIs) {
  const auto some = models({"m-Q2_K.gguf", "m-Q8_0.gguf", "c-F16-00001-of-00003.gguf"});
  const auto refusal = [&](RepoName name) { return error_of([&] { choose_model(some, name); }); };
  EXPECT_NE(refusal({"u", "r", "Q5_0"}).find("u/r: has nothing of type Q5_0; expected one of: F16"),
            std::string::npos);
  EXPECT_NE(refusal({"u", "r", "", "x.gguf"}).find("has no file x.gguf"), std::string::npos);
  EXPECT_NE(refusal({"u", "r", "f16"}).find("shards of c-F16 are missing"), std::string::npos);
  EXPECT_NE(error_of([] {
              choose_model({}, {"u", "r"});
            }).find("holds no GGUF file"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::hub::test
