// Two small things about names: quoting them in errors, and the file names of shards.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gguf/in_quotes.h"
#include "gguf/shard_name.h"

namespace sluice::gguf::test {
namespace {

using namespace std::string_literals;

TEST(InQuotes, LeavesPrintableTextAlone) {
  EXPECT_EQ(in_quotes("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(in_quotes(""), "''");
}

TEST(InQuotes, EscapesWhateverCouldForgeOrBreakALine) {
  EXPECT_EQ(in_quotes("a\nb\0c\x7f\xc3\xa9'\\"s), "'a\\x0ab\\x00c\\x7f\\xc3\\xa9\\x27\\x5c'");
}

TEST(InQuotes, CutsAfterSixtyBytes) {
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
}

TEST(ShardName, IsTakenApartAndPutTogether) {
  const auto name = parse_shard_name("dir/my-model-00002-of-00013.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "dir/my-model");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 13);
  EXPECT_EQ(name->path(), "dir/my-model-00002-of-00013.gguf");
  EXPECT_EQ(name->with_number(1).path(), "dir/my-model-00001-of-00013.gguf");
}

TEST(ShardName, IsNotSeenInOtherNames) {
  for (const char* path :
       {"", "m.gguf", "-00001-of-00002.gguf", "m-0001-of-0002.gguf", "m-00001-of-00002.bin",
        "m-0000x-of-00002.gguf", "m_00001-of-00002.gguf", "m-00001-of-00002.gguf.part"}) {
    EXPECT_FALSE(parse_shard_name(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace sluice::gguf::test
