// GGUF -> GGUF in another type: which types come out, that keys and vectors stay, that every row is
// what the encoder makes of it, and that damaged sources are refused by name.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/requantize.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "quant/decode.h"
#include "unit/model/draft.h"
#include "unit/model/tiny_model.h"

namespace sluice::model_file::test {
namespace {

using namespace model::test;  // tiny models to start from

using quant::Type;

struct Result {
  RequantizeResult counts;
  Draft draft;
};

Result convert(const std::string& path, const char* mix, int n_threads = 2) {
  const TempDir dir;
  ThreadPool pool(n_threads);
  const gguf::ModelFile file = gguf::ModelFile::open(path);
  Result result;
  result.counts = requantize(file, dir / "out.gguf", QuantMix::parse(mix), pool, {});
  result.draft = Draft::read(dir / "out.gguf");
  return result;
}

// Three experts, and rows that all types fit.
std::string write_source(const TempDir& dir, const char* mix = "F32") {
  SynthOptions options = tiny_options("qwen3moe", "Q4_K");
  options.mix = QuantMix::parse(mix);
  options.config.n_experts = 3;
  ThreadPool pool(2);
  write_synthetic_model(dir / "source.gguf", options, pool, {});
  return dir / "source.gguf";
}

TEST(Requantize, GivesEachTensorTheMixesTypeAndTheEncodersBytes) {
  const TempDir dir;
  const std::string path = write_source(dir);
  Draft source = Draft::read(path);
  for (const char* name : {"F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q4_K_M", "Q5_K_M"}) {
    const QuantMix mix = QuantMix::parse(name);
    Result got = convert(path, name);
    ASSERT_EQ(got.draft.tensors.size(), source.tensors.size()) << name;
    int n_converted = 0;
    uint64_t bytes_before = 0, bytes_after = 0;
    for (size_t i = 0; i < source.tensors.size(); ++i) {
      const DraftTensor &from = source.tensors[i], &to = got.draft.tensors[i];
      EXPECT_EQ(to.name, from.name) << "the order stays";
      EXPECT_EQ(to.shape, from.shape) << from.name;
      const Type type = mix.type_of(from.name, from.shape, {2, 3});
      ASSERT_EQ(to.type->name, quant::type_name(type)) << name << " " << from.name;
      DraftTensor expected = from;
      if (to.type != from.type) expected.set(type, from.floats());
      EXPECT_TRUE(to.data == expected.data) << name << " " << from.name;
      n_converted += to.type != from.type;
      bytes_before += from.data.size();
      bytes_after += to.data.size();
    }
    EXPECT_GT(n_converted, 10) << name;
    EXPECT_EQ(got.counts.n_converted, n_converted) << name;
    EXPECT_EQ(got.counts.n_kept, std::ssize(source.tensors) - n_converted) << name;
    EXPECT_EQ(got.counts.n_from_quantized, 0) << name;
    EXPECT_EQ(got.counts.bytes_before, bytes_before) << name;
    EXPECT_EQ(got.counts.bytes_after, bytes_after) << name;
  }
}

TEST(Requantize, KeepsAllKeysButThoseOfTypeAndShards) {
  const TempDir dir;
  Draft source = Draft::read(write_source(dir));
  source.metadata.set("some.key", std::vector<float>{1.5f, 2.5f});
  source.metadata.set("split.count", uint16_t{1});
  source.metadata.set("split.no", uint16_t{0});
  source.write(dir / "with_keys.gguf");
  const Draft got = convert(dir / "with_keys.gguf", "Q4_K_M").draft;
  for (const auto& [key, value] : source.metadata.entries()) {
    if (key.starts_with("split.")) {
      EXPECT_FALSE(got.metadata.contains(key)) << key;
    } else if (key != "general.file_type") {
      ASSERT_TRUE(got.metadata.contains(key)) << key;
      EXPECT_TRUE(*got.metadata.find(key) == value) << key;
    }
  }
  EXPECT_EQ(got.metadata.get_int("general.file_type"), 15);
  EXPECT_EQ(got.metadata.entries().size(), source.metadata.entries().size() - 2);
}

TEST(Requantize, NoNumberOfThreadsChangesAByte) {
  const TempDir dir;
  const std::string path = write_source(dir);
  const gguf::ModelFile file = gguf::ModelFile::open(path);
  std::string expected;
  for (const int n_threads : {1, 2, 5}) {
    ThreadPool pool(n_threads);
    requantize(file, dir / "out.gguf", QuantMix::parse("Q4_K_M"), pool, {});
    const std::string bytes = read_file(dir / "out.gguf");
    if (expected.empty()) expected = bytes;
    EXPECT_TRUE(bytes == expected) << n_threads << " threads";
  }
}

TEST(Requantize, TheSameTypeAgainCopiesEveryByte) {
  const TempDir dir;
  for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
    const std::string path = write_source(dir, mix);
    const Result got = convert(path, mix);
    const Draft source = Draft::read(path);
    EXPECT_EQ(got.counts.n_converted, 0) << mix;
    EXPECT_EQ(got.counts.bytes_after, got.counts.bytes_before) << mix;
    for (size_t i = 0; i < source.tensors.size(); ++i) {
      EXPECT_TRUE(source.tensors[i].data == got.draft.tensors[i].data) << source.tensors[i].name;
    }
  }
}

TEST(Requantize, CountsWhatWasQuantisedBefore) {
  const TempDir dir;
  const Result got = convert(write_source(dir, "Q8_0"), "Q4_K");
  EXPECT_GT(got.counts.n_converted, 10);
  EXPECT_EQ(got.counts.n_from_quantized, got.counts.n_converted);
  // Decoded and encoded once more, row by row.
  Draft source = Draft::read(dir / "source.gguf");
  const DraftTensor& from = source.at("blk.1.attn_k.weight");
  std::vector<float> values(static_cast<size_t>(from.shape[0] * from.shape[1]));
  quant::decode_row(Type::q8_0, from.data.data(), values);
  DraftTensor expected = from;
  expected.set(Type::q4_k, values);
  Draft out = got.draft;
  EXPECT_TRUE(out.at("blk.1.attn_k.weight").data == expected.data);
}

// A substitute such as Q5_0 has no encoder here; Q8_0 takes its place.
TEST(Requantize, RowsTooShortForTheTypeBecomeQ8_0) {
  const TempDir dir;
  write_tiny(dir / "m.gguf", "qwen3moe", "F32");
  Draft got = convert(dir / "m.gguf", "Q4_K").draft;
  EXPECT_EQ(got.at("blk.0.attn_q.weight").type->name, "Q8_0");
  EXPECT_EQ(got.at("blk.0.ffn_down_exps.weight").type->name, "Q8_0");
  EXPECT_EQ(got.at("blk.0.ffn_gate_inp.weight").type->name, "F32");
}

TEST(Requantize, WorksForAnArchitectureThatSluiceCannotRun) {
  const TempDir dir;
  Draft draft = Draft::read(write_source(dir));
  draft.metadata.set("general.architecture", std::string("other"));
  draft.add("blk.0.unheard_of.weight", Type::f32, {256, 2});
  draft.write(dir / "other.gguf");
  Draft got = convert(dir / "other.gguf", "Q6_K").draft;
  EXPECT_EQ(got.at("blk.0.unheard_of.weight").type->name, "Q6_K");
}

// The row in the text is the first bad one, whichever thread finds its own first.
TEST(Requantize, RefusesNumbersThatAreNotFiniteByTensorAndRow) {
  const TempDir dir;
  const std::string path = write_source(dir);
  for (const float bad : {std::numeric_limits<float>::infinity(), NAN}) {
    for (const int n_threads : {1, 3}) {
      Draft draft = Draft::read(path);
      DraftTensor& t = draft.at("blk.1.attn_v.weight");
      for (const size_t row : {100, 17, 63}) {
        std::memcpy(t.data.data() + 4 * (row * 256 + 255), &bad, 4);
      }
      draft.write(dir / "bad.gguf");
      const gguf::ModelFile file = gguf::ModelFile::open(dir / "bad.gguf");
      ThreadPool pool(n_threads);
      const std::string text = error_of(Errc::bad_file, [&] {
        requantize(file, dir / "out.gguf", QuantMix::parse("Q8_0"), pool, {});
      });
      expect_contains(text, dir / "bad.gguf: tensor 'blk.1.attn_v.weight'");
      expect_contains(text, "not finite in row 17;", std::to_string(n_threads) + " threads");
      EXPECT_FALSE(std::filesystem::exists(dir / "out.gguf"));
      EXPECT_FALSE(std::filesystem::exists(dir / "out.gguf.partial"));
    }
  }
}

// 17 MiB of halves: more than one piece of writing (16 MiB), with the damage in the second.
TEST(Requantize, PiecesOfALargeTensorFitTogether) {
  constexpr int64_t kRows = 140000, kCols = 64;
  const TempDir dir;
  Draft draft;
  DraftTensor& t = draft.add("a.weight", Type::f32, {kCols, kRows});
  for (size_t i = 0; i < t.data.size() / 4; ++i) {
    const float value = static_cast<float>(i % 10007);
    std::memcpy(t.data.data() + 4 * i, &value, 4);
  }
  draft.write(dir / "large.gguf");
  const DraftTensor got = convert(dir / "large.gguf", "F16").draft.tensors[0];
  DraftTensor expected = t;
  expected.set(Type::f16, t.floats());
  EXPECT_TRUE(got.data == expected.data);

  const float bad = NAN;
  std::memcpy(t.data.data() + 4 * 139000 * kCols, &bad, 4);
  draft.write(dir / "large.gguf");
  expect_contains(error_of(Errc::bad_file, [&] { convert(dir / "large.gguf", "F16"); }),
                  "not finite in row 139000;");
}

TEST(Requantize, RefusesWhatItCannotReadOrWrite) {
  const TempDir dir;
  const std::string path = write_source(dir);
  Draft draft = Draft::read(path);
  draft.at("blk.0.attn_q.weight").retype(*quant::find_type_info(16));
  draft.write(dir / "iq2.gguf");
  ThreadPool pool(1);
  const gguf::ModelFile iq2 = gguf::ModelFile::open(dir / "iq2.gguf");
  const std::string text = error_of(Errc::bad_file, [&] {
    requantize(iq2, dir / "out.gguf", QuantMix::parse("Q8_0"), pool, {});
  });
  expect_contains(text, "tensor 'blk.0.attn_q.weight' is of type IQ2_XXS");
  const gguf::ModelFile source = gguf::ModelFile::open(path);
  for (const char* mix : {"Q5_0", "Q3_K", "IQ4_XS", "MXFP4"}) {
    const std::string asked = error_of(Errc::bad_request, [&] {
      requantize(source, dir / "out.gguf", QuantMix::parse(mix), pool, {});
    });
    expect_contains(asked, mix);
    expect_contains(asked, "Q4_K_M");
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "out.gguf"));
}

TEST(Requantize, ReportsProgressUpToTheWhole) {
  const TempDir dir;
  const gguf::ModelFile file = gguf::ModelFile::open(write_source(dir));
  ThreadPool pool(2);
  uint64_t last = 0, total = 0;
  const RequantizeResult result = requantize(file, dir / "out.gguf", QuantMix::parse("F16"), pool,
                                             [&](uint64_t done, uint64_t of) {
                                               EXPECT_GT(done, last);
                                               last = done;
                                               total = of;
                                             });
  EXPECT_EQ(last, result.bytes_before);
  EXPECT_EQ(total, result.bytes_before);
}

}  // namespace
}  // namespace sluice::model_file::test
