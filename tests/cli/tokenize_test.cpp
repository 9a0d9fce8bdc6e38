// sluice tokenize: text from everywhere, tokens in every form, and back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

// The vocabulary of `sluice synth`: token b is byte b, then <|endoftext|>, <|im_start|>,
// <|im_end|>, " t" and "he".
class Tokenize : public testing::Test {
 protected:
  Args with_model(const Args& flags) const { return Args{"tokenize", "-m", model} + flags; }
  std::string output(const Args& flags) const { return output_of(with_model(flags)); }
  Outcome outcome(const Args& flags) const { return run_sluice(with_model(flags)); }

  TempDir dir;
  const std::string model = make_model(dir / "m.gguf");
};

TEST_F(Tokenize, PrintsATableOfIdsAndPieces) {
  EXPECT_EQ(output({"-p", "a the\n\"\\\x01\xc2\x9b\xff"}),
            "      97  \"a\"\n"
            "     259  \" t\"\n"
            "     260  \"he\"\n"
            "      10  \"\\n\"\n"
            "      34  \"\\\"\"\n"
            "      92  \"\\\\\"\n"
            "       1  \"\\x01\"\n"
            "     194  \"\\xc2\"\n"
            "     155  \"\\x9b\"\n"
            "     255  \"\\xff\"\n");
}

TEST_F(Tokenize, PrintsIdsOnOneLine) {
  EXPECT_EQ(output({"-p", "the", "--ids"}), "116,260\n");
  EXPECT_EQ(output({"-p", "", "--ids"}), "\n");
}

TEST_F(Tokenize, PrintsJsonWithTextIdsAndTheBytesThatAreNoText) {
  const json got = json::parse(output({"-p", "h\xc3\xa4<|im_end|>", "--json"}));
  EXPECT_EQ(got.at("ids"), (json{104, 195, 164, 258}));
  EXPECT_EQ(got.at("tokens"), (json{{{"id", 104}, {"text", "h"}},
                                    {{"id", 195}, {"text", "\xef\xbf\xbd"}, {"bytes", {195}}},
                                    {{"id", 164}, {"text", "\xef\xbf\xbd"}, {"bytes", {164}}},
                                    {{"id", 258}, {"text", "<|im_end|>"}}}));
  EXPECT_EQ(output({"-p", "", "--json"}), "{\"tokens\":[],\"ids\":[]}\n");
}

TEST_F(Tokenize, ReadsAFileToItsLastByte) {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
  write_file(dir / "text", bytes);
  const json ids = json::parse(output({"-f", dir / "text", "--json"})).at("ids");
  ASSERT_EQ(ids.size(), 256u);
  for (int b = 0; b < 256; ++b) EXPECT_EQ(ids[static_cast<size_t>(b)], b);
}

TEST_F(Tokenize, ReadsStandardInput) {
  write_file(dir / "text", "the");
  ProcessOptions options;
  const std::string path = dir / "text";
  options.in_child = [&] { ::dup2(::open(path.c_str(), O_RDONLY), 0); };
  EXPECT_EQ(run_sluice(with_model({"-", "--ids"}), options).out, "116,260\n");
  EXPECT_EQ(run_sluice(with_model({"-", "--ids"})).out, "\n");  // nothing to read
}

TEST_F(Tokenize, ControlTokensCanBeTakenAsText) {
  EXPECT_EQ(output({"-p", "<|im_end|>", "--ids"}), "258\n");
  EXPECT_EQ(output({"-p", "<|im_end|>", "--no-special", "--ids"}),
            "60,124,105,109,95,101,110,100,124,62\n");
}

TEST_F(Tokenize, DecodesIdsWithoutALineEndOfItsOwn) {
  EXPECT_EQ(output({"--decode", "116,260,258,10"}), "the<|im_end|>\n");
  EXPECT_EQ(output({"--decode", "116,260,258", "--no-special"}), "the");
  EXPECT_EQ(output({"--decode", "255"}), "\xff");
  EXPECT_EQ(output({"--decode", "104,258", "--json"}), "{\"text\":\"h<|im_end|>\"}\n");
}

TEST_F(Tokenize, WarnsWhereTheFileNamesNoPreTokenizer) {
  EditableModel edited(model);
  edited.remove_key("tokenizer.ggml.pre");
  edited.write(dir / "edited.gguf");
  const Outcome got = run_sluice({"tokenize", "-m", dir / "edited.gguf", "-p", "the", "--ids"});
  EXPECT_EQ(got.out, "116,260\n");
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_TRUE(got.err.starts_with("sluice: warning: ")) << got.err;
  EXPECT_NE(got.err.find("names no pre-tokenizer"), std::string::npos) << got.err;
}

TEST_F(Tokenize, RefusesAModelWhosePreTokenizerIsNotKnown) {
  EditableModel edited(model);
  edited.set("tokenizer.ggml.pre", std::string("new-one"));
  edited.write(dir / "edited.gguf");
  EXPECT_TRUE(refused(run_sluice({"tokenize", "-m", dir / "edited.gguf", "-p", "a"}),
                      {"edited.gguf: pre-tokenizer 'new-one' is not known", "qwen2"}));
}

TEST_F(Tokenize, RefusesWhatItCannotDo) {
  EXPECT_TRUE(refused(outcome({"--decode", "320"}),
                      {"token id 320 is not in the vocabulary; expected 0 to 319"}));
  EXPECT_TRUE(refused(outcome({"-f", dir / "none"}),
                      {"none cannot be opened (No such file", "expected a file with text"}));
  EXPECT_TRUE(
      refused(outcome({"-f", dir.path()}), {dir.path(), "cannot be read (Is a directory)"}));
  EXPECT_TRUE(misused(outcome({}), {"nothing to encode"}));
  EXPECT_TRUE(misused(outcome({"-p", "a", "-f", "b"}), {"--file", "--prompt"}));
  EXPECT_TRUE(misused(outcome({"--decode", "1,x"}), {"--decode"}));
}

}  // namespace
}  // namespace sluice::test
