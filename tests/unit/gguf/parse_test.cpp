// The parser on hand-made bytes: what it reads, and that every broken file of the table is refused
// with the facts.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/parse.h"

#include <gtest/gtest.h>

#include "gguf/byte_reader.h"
#include "unit/gguf/broken_files.h"
#include "unit/gguf/file_bytes.h"
#include "unit/gguf/temp_dir.h"

namespace sluice::gguf::test {
namespace {

ParsedFile parse_text(const std::string& bytes) { return parse(as_bytes(bytes), "dir/m.gguf"); }

class Refuses : public testing::TestWithParam<BrokenFile> {};

TEST_P(Refuses, WithFileAndFacts) {
  const std::string text = error_of([] { parse_text(GetParam().bytes); });
  EXPECT_EQ(text.find("dir/m.gguf: "), 0u) << text;
  EXPECT_PRED2(contains, text, "; expected ");
  for (const std::string& fact : GetParam().facts) EXPECT_PRED2(contains, text, fact);
}

INSTANTIATE_TEST_SUITE_P(Parse, Refuses, testing::ValuesIn(broken_files()),
                         [](const auto& test) { return test.param.name; });

TEST(Parse, ReadsASmallFileOfEitherVersion) {
  for (const uint32_t version : {2u, 3u}) {
    std::string bytes = small_valid_file();
    bytes[4] = static_cast<char>(version);
    const ParsedFile file = parse_text(bytes);
    EXPECT_EQ(file.version, version);
    EXPECT_EQ(file.alignment, 32u);
    EXPECT_EQ(file.metadata.get_string("general.name"), "tiny");
    EXPECT_EQ(file.metadata.get_ints("a.ints"), (std::vector<int64_t>{-1, 2, 3}));
    ASSERT_EQ(file.tensors.size(), 3u);
    EXPECT_TRUE(file.tensors[0].shape.empty());
    EXPECT_EQ(file.tensors[0].n_bytes, 4u);
    EXPECT_EQ(file.tensors[2].name, "matrix");
    EXPECT_EQ(file.tensors[2].shape, (std::vector<int64_t>{32, 2}));
    EXPECT_EQ(file.tensors[2].type->name, "Q4_0");
    EXPECT_EQ(file.tensors[2].n_bytes, 36u);
    EXPECT_EQ(file.tensors[2].offset, file.data_start + 64);
    EXPECT_EQ(file.data_start % 32, 0u);
  }
}

TEST(Parse, AcceptsTheSmallestFile) {
  const ParsedFile file = parse_text(FileBytes(0, 0).str());
  EXPECT_TRUE(file.metadata.entries().empty());
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_EQ(file.data_start, 32u);
}

TEST(Parse, AcceptsAMissingPadAfterTheLastTensor) {
  const std::string bytes = FileBytes(1, 0).tensor("t", {3}, kTensorF32, 0).pad().zeros(12).str();
  EXPECT_EQ(parse_text(bytes).tensors[0].n_bytes, 12u);
}

TEST(Parse, AcceptsTensorsOutOfOrderAndWithGaps) {
  const std::string bytes = FileBytes(2, 0)
                                .tensor("b", {8}, kTensorF32, 96)
                                .tensor("a", {8}, kTensorF32, 0)
                                .pad()
                                .zeros(128)
                                .str();
  const ParsedFile file = parse_text(bytes);
  EXPECT_EQ(file.tensors[0].offset, file.data_start + 96);
  EXPECT_EQ(file.tensors[1].offset, file.data_start);
}

TEST(Parse, AcceptsEmptyTensorsWhereverTheyLie) {
  const std::string bytes = FileBytes(3, 0)
                                .tensor("none", {0, 7}, kTensorF32, 32)
                                .tensor("a", {16}, kTensorF32, 0)
                                .tensor("nor", {32, 0}, kTensorQ4_0, 32)
                                .pad()
                                .zeros(64)
                                .str();
  EXPECT_EQ(parse_text(bytes).tensors[0].n_bytes, 0u);
}

TEST(Parse, AcceptsTypesThatSluiceCannotComputeWith) {
  const std::string bytes =
      FileBytes(1, 0).tensor("t", {256}, kTensorIQ2_XXS, 0).pad().zeros(66).str();
  const ParsedFile file = parse_text(bytes);
  EXPECT_EQ(file.tensors[0].type->name, "IQ2_XXS");
  EXPECT_FALSE(file.tensors[0].type->supported);
}

TEST(Parse, TakesANameOf63BytesAndABoolOfAnyByte) {
  const std::string name(63, 'n');
  const std::string bytes = FileBytes(1, 1)
                                .key("flag", kBool)
                                .put(uint8_t{0x80})
                                .tensor(name, {1}, kTensorF32, 0)
                                .pad()
                                .zeros(4)
                                .str();
  const ParsedFile file = parse_text(bytes);
  EXPECT_EQ(file.tensors[0].name, name);
  EXPECT_TRUE(file.metadata.get_bool_or("flag", false));
}

TEST(Parse, TakesAKeyOf65535BytesAndNoLongerOne) {
  const auto with_key_of = [](size_t n) {
    return FileBytes(0, 1).key(std::string(n, 'k'), kU8).put(uint8_t{1}).str();
  };
  EXPECT_EQ(parse_text(with_key_of(65535)).metadata.entries().size(), 1u);
  EXPECT_PRED2(contains, error_of([&] { parse_text(with_key_of(65536)); }),
               "has 65536 bytes; expected 1 to 65535");
}

TEST(Parse, ObeysTheAlignmentKeyForTheStartOfTheData) {
  for (const uint32_t alignment : {8u, 32u, 64u, 4096u, 1u << 21}) {
    FileBytes file(1, 1);
    file.key("general.alignment", kU32).put(alignment).tensor("t", {2}, kTensorF32, 0);
    const ParsedFile parsed = parse_text(file.pad(alignment).zeros(8).str());
    EXPECT_EQ(parsed.alignment, alignment);
    EXPECT_EQ(parsed.tensors[0].offset % alignment, 0u);
    EXPECT_EQ(parsed.tensors[0].offset + 8, file.str().size());
  }
}

TEST(Parse, NamesTheFirstTensorOutsideButTheWholeNeed) {
  const std::string bytes = FileBytes(3, 0)
                                .tensor("in", {8}, kTensorF32, 0)
                                .tensor("first_out", {8}, kTensorF32, 32)
                                .tensor("last_out", {8}, kTensorF32, 992)
                                .pad()
                                .zeros(32)
                                .str();
  const std::string text = error_of([&] { parse_text(bytes); });
  EXPECT_PRED2(contains, text, "'first_out'");
  EXPECT_PRED2(contains, text, cat("has ", bytes.size(), " bytes"));
  EXPECT_PRED2(contains, text, cat("at least ", bytes.size() + 992));
}

// Of a file that is longer than what is here of it.
TEST(Parse, ReadsAHeaderOrAsksForMore) {
  const std::string bytes = small_valid_file();
  const uint64_t header = parse_text(bytes).data_start;
  const auto read = [&](size_t n) {
    return parse_header(as_bytes(bytes).first(n), "m.gguf", bytes.size());
  };
  EXPECT_EQ(read(header).tensors.size(), 3u);
  EXPECT_EQ(read(header).data_start, header);
  size_t n_asked = 0;
  for (size_t n = 0; n < header; ++n) {
    try {
      read(n);
    } catch (const NeedsMoreBytes&) {
      ++n_asked;
    }
  }
  EXPECT_GT(n_asked, header - 32);  // but for the padding behind the directory
  const std::string other = "GGUX0000";
  EXPECT_PRED2(contains, error_of([&] { parse_header(as_bytes(other), "m.gguf", 5000); }),
               "not a GGUF");
}

TEST(Parse, SeesAHeaderWhoseFileIsTooShort) {
  const std::string bytes = small_valid_file();
  const uint64_t header = parse_text(bytes).data_start;
  EXPECT_PRED2(contains, error_of([&] {
                 parse_header(as_bytes(bytes).first(header), "m.gguf", bytes.size() - 1);
               }),
               "reaches beyond the end");
}

}  // namespace
}  // namespace sluice::gguf::test
