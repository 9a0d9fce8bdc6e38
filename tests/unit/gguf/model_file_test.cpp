// Models of one file and of several: the good ones, and every way in which shards can disagree.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "gguf/writer.h"
#include "unit/gguf/file_bytes.h"
#include "unit/gguf/temp_dir.h"

namespace sluice::gguf::test {
namespace {

// What a test may change before shard `index` is written.
using Change = std::function<void(int index, Writer& writer)>;

// Three shards of 0, 2 and 1 tensors of one float each, the values 1, 2, 3. Only the first has
// metadata of its own.
void write_shards(const TempDir& dir, const Change& change = {}) {
  const std::vector<std::vector<std::string>> names = {{}, {"a", "b"}, {"c"}};
  float value = 0;
  for (int i = 0; i < 3; ++i) {
    Writer writer(dir / cat("m-0000", i + 1, "-of-00003.gguf"));
    if (i == 0) writer.metadata().set("general.name", "split");
    writer.metadata().set("split.no", static_cast<uint16_t>(i));
    writer.metadata().set("split.count", uint16_t{3});
    writer.metadata().set("split.tensors.count", int32_t{3});
    for (const std::string& name : names[i]) writer.add_tensor(name, quant::Type::f32, {1});
    if (change) change(i, writer);
    writer.begin();
    for (size_t t = 0; t < writer.tensors().size(); ++t) {
      value += 1;
      writer.write(std::as_bytes(std::span(&value, 1)));
    }
    writer.finish();
  }
}

std::string first(const TempDir& dir) { return dir / "m-00001-of-00003.gguf"; }

std::string open_error(const std::string& path) {
  return error_of([&] { ModelFile::open(path); });
}

// The error after `change` was made to shard `index`.
std::string error_after(int index, const std::function<void(Writer&)>& change) {
  const TempDir dir;
  write_shards(dir, [&](int i, Writer& writer) {
    if (i == index) change(writer);
  });
  return open_error(first(dir));
}

TEST(ModelFile, OpensASingleFile) {
  const TempDir dir;
  write_file(dir / "any name", small_valid_file());
  ModelFile opened = ModelFile::open(dir / "any name");
  const Tensor* before = opened.find("vector");
  const ModelFile model = std::move(opened);
  EXPECT_EQ(model.metadata().get_string("general.name"), "tiny");
  EXPECT_EQ(model.n_shards(), 1u);
  EXPECT_EQ(model.paths(), (std::vector<std::string>{dir / "any name"}));
  EXPECT_EQ(model.file_bytes(), small_valid_file().size());
  EXPECT_EQ(model.alignment(), 32u);
  ASSERT_EQ(model.tensors().size(), 3u);
  EXPECT_EQ(model.find("vector"), before) << "a move must leave the tensors in place";
  EXPECT_EQ(model.find("vector"), &model.tensors()[1]);
  EXPECT_EQ(model.find("vector")->data.size(), 20u);
  EXPECT_EQ(model.find("vecto"), nullptr);
}

TEST(ModelFile, RefusesABrokenFileByItsName) {
  const TempDir dir;
  write_file(dir / "m.gguf", small_valid_file().substr(0, 300));
  EXPECT_EQ(open_error(dir / "m.gguf").find(dir / "m.gguf: "), 0u);
  EXPECT_PRED2(contains, open_error(dir / "none.gguf"), "no such file");
}

TEST(ModelFile, OpensAllShardsFromTheFirst) {
  const TempDir dir;
  write_shards(dir, [](int i, Writer& writer) {
    if (i == 1) writer.metadata().set("general.alignment", 8u);
  });
  const ModelFile model = ModelFile::open(first(dir));
  EXPECT_EQ(model.n_shards(), 3u);
  EXPECT_EQ(model.metadata().get_string("general.name"), "split");
  EXPECT_EQ(model.alignment(), 8u) << "the least of all shards";
  ASSERT_EQ(model.tensors().size(), 3u);
  float expected = 0;
  for (const char* name : {"a", "b", "c"}) {
    const Tensor* tensor = model.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    float value = 0;
    std::memcpy(&value, tensor->data.data(), sizeof(value));
    EXPECT_EQ(value, expected += 1) << name;
    EXPECT_EQ(tensor->shard, name[0] == 'c' ? 2u : 1u) << name;
    const std::string bytes = read_file(model.paths()[tensor->shard]);
    EXPECT_EQ(std::memcmp(bytes.data() + tensor->offset, &value, sizeof(value)), 0) << name;
  }
}

TEST(ModelFile, TreatsASplitCountOfOneAsASingleFile) {
  const TempDir dir;
  Writer writer(dir / "m.gguf");
  writer.metadata().set("split.count", uint16_t{1});
  writer.begin();
  writer.finish();
  EXPECT_EQ(ModelFile::open(dir / "m.gguf").n_shards(), 1u);
}

TEST(ModelFile, NamesTheFirstShardWhenGivenAnother) {
  const TempDir dir;
  write_shards(dir);
  const std::string text = open_error(dir / "m-00003-of-00003.gguf");
  EXPECT_PRED2(contains, text, "this is shard 3 of 3");
  EXPECT_PRED2(contains, text, "expected the first shard: pass " + first(dir));
}

TEST(ModelFile, NamesAMissingShard) {
  const TempDir dir;
  write_shards(dir);
  std::filesystem::remove(dir / "m-00002-of-00003.gguf");
  EXPECT_EQ(open_error(first(dir)), first(dir) + ": shard 2 of 3 is missing; expected it at " +
                                        (dir / "m-00002-of-00003.gguf"));
}

TEST(ModelFile, NamesABrokenShard) {
  const TempDir dir;
  write_shards(dir);
  write_file(dir / "m-00003-of-00003.gguf", "GGUF");
  EXPECT_EQ(open_error(first(dir)).find(dir / "m-00003-of-00003.gguf: the file has 4 bytes"), 0u);
}

TEST(ModelFile, RefusesShardsUnderOtherNames) {
  const TempDir dir;
  write_shards(dir);
  std::filesystem::copy(first(dir), dir / "model.gguf");
  EXPECT_PRED2(contains, open_error(dir / "model.gguf"),
               "its name does not say which; expected a name that ends in -00001-of-00003.gguf");
  std::filesystem::copy(first(dir), dir / "m-00001-of-00004.gguf");
  EXPECT_PRED2(contains, open_error(dir / "m-00001-of-00004.gguf"),
               "name says 4 shards, its key split.count says 3");
  std::filesystem::copy(first(dir), dir / "n-00002-of-00003.gguf");
  EXPECT_PRED2(contains, open_error(dir / "n-00002-of-00003.gguf"),
               "name says shard 2, its key split.no says the first");
}

TEST(ModelFile, RefusesAShardCountBeyondItsType) {
  const std::string text =
      error_after(0, [](Writer& w) { w.metadata().set("split.count", uint32_t{65536}); });
  EXPECT_PRED2(contains, text, "'split.count' is 65536");
  EXPECT_PRED2(contains, text, "to 65535");
}

TEST(ModelFile, RefusesShardsThatDisagree) {
  EXPECT_PRED2(contains,
               error_after(2, [](Writer& w) { w.metadata().set("split.no", uint16_t{1}); }),
               "m-00003-of-00003.gguf: key split.no is 1; expected 2");
  EXPECT_PRED2(contains,
               error_after(1, [](Writer& w) { w.metadata().set("split.count", uint16_t{4}); }),
               "m-00002-of-00003.gguf: key split.count is 4; expected 3");
  EXPECT_PRED2(contains, error_after(1, [](Writer& w) { w.metadata().set("split.no", "one"); }),
               "key 'split.no' is of type string; expected an integer");
}

TEST(ModelFile, RefusesShardNumbersThatNoFileHas) {
  for (const int64_t no : {int64_t{-1}, int64_t{65536}, std::numeric_limits<int64_t>::max(),
                           std::numeric_limits<int64_t>::min()}) {
    const std::string text = error_after(0, [&](Writer& w) { w.metadata().set("split.no", no); });
    EXPECT_PRED2(contains, text, cat("'split.no' is ", no));
    EXPECT_PRED2(contains, text, "from 0 to 65535");
  }
}

TEST(ModelFile, RefusesAWrongTotalOfTensors) {
  const std::string text =
      error_after(0, [](Writer& w) { w.metadata().set("split.tensors.count", int32_t{4}); });
  EXPECT_PRED2(contains, text, "m-00001-of-00003.gguf: the 3 shards hold 3 tensors; expected 4");
}

TEST(ModelFile, RefusesATensorInTwoShards) {
  const std::string text = error_after(0, [](Writer& w) {
    w.add_tensor("b", quant::Type::f32, {1});
    w.metadata().set("split.tensors.count", int32_t{4});
  });
  EXPECT_PRED2(contains, text, "m-00002-of-00003.gguf: tensor 'b' is also in ");
  EXPECT_PRED2(contains, text, "m-00001-of-00003.gguf; expected it in one shard");
}

TEST(ModelFile, PopulatesAllShardsAndCountsOverThem) {
  const TempDir dir;
  write_shards(dir);
  const ModelFile model = ModelFile::open(first(dir));
  std::vector<uint64_t> reports;
  model.populate([&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, model.file_bytes());
    reports.push_back(done);
  });
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(reports));
  EXPECT_EQ(reports.back(), model.file_bytes());
  model.populate({});
}

}  // namespace
}  // namespace sluice::gguf::test
