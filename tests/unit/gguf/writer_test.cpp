// The writer: what it writes is read back whole, and what it could not write leaves nothing behind.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "gguf/model_file.h"
#include "unit/gguf/file_bytes.h"
#include "unit/gguf/temp_dir.h"

namespace sluice::gguf::test {
namespace {

using quant::Type;

std::vector<std::byte> random_bytes(uint64_t seed, size_t n) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(random_bits(seed, i));
  return out;
}

// One key of every type, then one array of every type, with the extremes of each.
void set_every_type(Metadata& m) {
  m.set("z.u8", uint8_t{255});
  m.set("a.i8", int8_t{-128});
  m.set("u16", uint16_t{65535});
  m.set("i16", int16_t{-32768});
  m.set("u32", uint32_t{0xffffffff});
  m.set("i32", std::numeric_limits<int32_t>::min());
  m.set("f32", 1e-45f);
  m.set("bool", true);
  m.set("string", std::string("nul \0 and \xc3\xa9", 12));
  m.set("u64", ~uint64_t{0});
  m.set("i64", std::numeric_limits<int64_t>::min());
  m.set("f64", -0.1);
  m.set("u8s", std::vector<uint8_t>{0, 255});
  m.set("i8s", std::vector<int8_t>{-128, 127});
  m.set("u16s", std::vector<uint16_t>{0, 65535});
  m.set("i16s", std::vector<int16_t>{-32768, 32767});
  m.set("u32s", std::vector<uint32_t>{1, 0xffffffff});
  m.set("i32s", std::vector<int32_t>{-1, 1});
  m.set("f32s", std::vector<float>{0.5f, -0.0f});
  m.set("bools", std::vector<bool>{true, false, true});
  m.set("strings", std::vector<std::string>{"", "one", std::string(1000, 'x')});
  m.set("u64s", std::vector<uint64_t>{0, ~uint64_t{0}});
  m.set("i64s", std::vector<int64_t>{-1, 1});
  m.set("f64s", std::vector<double>{1e300});
  m.set("empty", std::vector<uint32_t>{});
  m.set("no strings", std::vector<std::string>{});
}

struct Declared {
  const char* name;
  Type type;
  std::vector<int64_t> shape;
};

std::vector<Declared> several_tensors() {
  return {{"scalar", Type::f32, {}},        {"odd", Type::f16, {7}},
          {"none", Type::f32, {0, 3}},      {"blocks", Type::q4_k, {512, 3}},
          {"cube", Type::q8_0, {32, 2, 3}}, {"four", Type::bf16, {2, 3, 2, 2}},
          {"tail", Type::mxfp4, {32}},      {"last none", Type::f32, {0}}};
}

// Writes the tensors' random data in pieces of the given size.
void write_sample(const std::string& path, uint32_t version, uint32_t alignment, size_t piece) {
  Writer writer(path, version);
  set_every_type(writer.metadata());
  if (alignment != 0) writer.metadata().set("general.alignment", alignment);
  for (const Declared& t : several_tensors()) writer.add_tensor(t.name, t.type, t.shape);
  writer.begin();
  std::vector<std::byte> all;
  for (const TensorInfo& tensor : writer.tensors()) {
    const auto data = random_bytes(seed_of(tensor.name, 1), tensor.n_bytes);
    all.insert(all.end(), data.begin(), data.end());
  }
  for (size_t i = 0; i < all.size(); i += piece) {
    writer.write(std::span(all).subspan(i, std::min(piece, all.size() - i)));
  }
  writer.finish();
}

void copy_model(const std::string& from, const std::string& to, uint32_t version) {
  const ModelFile model = ModelFile::open(from);
  Writer writer(to, version);
  for (const auto& [key, value] : model.metadata().entries()) writer.metadata().set(key, value);
  for (const Tensor& tensor : model.tensors()) {
    writer.add_tensor(tensor.name, *tensor.type, tensor.shape);
  }
  writer.begin();
  for (const Tensor& tensor : model.tensors()) writer.write(tensor.data);
  writer.finish();
}

TEST(Writer, WritesEveryTypeAndShapeSoThatTheyAreReadBack) {
  const TempDir dir;
  for (const uint32_t version : {2u, 3u}) {
    for (const uint32_t alignment : {0u, 8u, 32u, 64u, 4096u}) {
      SCOPED_TRACE(cat("version ", version, ", alignment ", alignment));
      const std::string path = dir / "m.gguf";
      write_sample(path, version, alignment, 1000);
      const ModelFile model = ModelFile::open(path);

      Metadata expected;
      set_every_type(expected);
      for (const auto& [key, value] : expected.entries()) {
        const Value* found = model.metadata().find(key);
        ASSERT_NE(found, nullptr) << key;
        EXPECT_TRUE(*found == value) << key << " was read as " << describe_type(*found);
      }
      EXPECT_EQ(model.alignment(), alignment == 0 ? 32 : alignment);
      ASSERT_EQ(model.tensors().size(), several_tensors().size());
      for (const Declared& t : several_tensors()) {
        const Tensor* tensor = model.find(t.name);
        ASSERT_NE(tensor, nullptr) << t.name;
        EXPECT_EQ(tensor->shape, t.shape) << t.name;
        EXPECT_EQ(tensor->type, &quant::type_info(t.type)) << t.name;
        EXPECT_EQ(tensor->offset % model.alignment(), 0u) << t.name;
        EXPECT_TRUE(
            std::ranges::equal(tensor->data, random_bytes(seed_of(t.name, 1), tensor->n_bytes)))
            << t.name;
      }
      EXPECT_EQ(model.file_bytes() % model.alignment(), 0u) << "the last pad is missing";
    }
  }
}

TEST(Writer, ResultDoesNotDependOnThePieces) {
  const TempDir dir;
  write_sample(dir / "whole.gguf", 3, 64, size_t{1} << 30);
  const std::string whole = read_file(dir / "whole.gguf");
  for (const size_t piece : {1, 7, 864, 865}) {
    write_sample(dir / "pieces.gguf", 3, 64, piece);
    EXPECT_TRUE(read_file(dir / "pieces.gguf") == whole) << "pieces of " << piece;
  }
}

TEST(Writer, CopiesAFileByteForByte) {
  const TempDir dir;
  for (const uint32_t version : {2u, 3u}) {
    write_sample(dir / "a.gguf", version, 0, 4096);
    copy_model(dir / "a.gguf", dir / "b.gguf", version);
    EXPECT_TRUE(read_file(dir / "a.gguf") == read_file(dir / "b.gguf")) << "version " << version;
  }
}

TEST(Writer, WritesTheBytesOfAHandMadeFile) {
  const TempDir dir;
  write_file(dir / "hand.gguf", FileBytes().raw(small_valid_file()).pad().str());
  copy_model(dir / "hand.gguf", dir / "copy.gguf", 3);
  EXPECT_EQ(read_file(dir / "copy.gguf"), read_file(dir / "hand.gguf"));
}

TEST(Writer, KeepsTheOrderOfTheKeys) {
  const TempDir dir;
  write_sample(dir / "m.gguf", 3, 0, 4096);
  Metadata expected;
  set_every_type(expected);
  const ModelFile model = ModelFile::open(dir / "m.gguf");
  ASSERT_EQ(model.metadata().entries().size(), expected.entries().size());
  for (size_t i = 0; i < expected.entries().size(); ++i) {
    EXPECT_EQ(model.metadata().entries()[i].key, expected.entries()[i].key) << "key " << i;
  }
}

TEST(Writer, WritesTypesThatSluiceCannotComputeWith) {
  const TempDir dir;
  Writer writer(dir / "m.gguf");
  writer.add_tensor("t", *quant::find_type_info(16), {256});
  writer.begin();
  writer.write(random_bytes(1, 66));
  writer.finish();
  EXPECT_EQ(ModelFile::open(dir / "m.gguf").find("t")->type->name, "IQ2_XXS");
}

TEST(Writer, TakesLargePiecesAndSmallOnesInTurn) {
  const TempDir dir;
  constexpr int64_t kLarge = 3 << 20;
  const auto large = random_bytes(1, kLarge);
  const auto small = random_bytes(2, 5);
  Writer writer(dir / "m.gguf");
  for (const char* name : {"a", "b"}) {
    writer.add_tensor(std::string(name) + " small", *quant::find_type_info(24), {5});
    writer.add_tensor(std::string(name) + " large", *quant::find_type_info(24), {kLarge});
  }
  writer.begin();
  for (const auto* data : {&small, &large, &small, &large}) writer.write(*data);
  writer.finish();
  const ModelFile model = ModelFile::open(dir / "m.gguf");
  for (const Tensor& tensor : model.tensors()) {
    EXPECT_TRUE(std::ranges::equal(tensor.data, tensor.n_bytes == 5 ? small : large))
        << tensor.name;
  }
}

TEST(Writer, ShowsNothingUnderTheFinalNameBeforeItFinishes) {
  const TempDir dir;
  write_file(dir / "m.gguf", "older");
  {
    Writer writer(dir / "m.gguf");
    writer.add_tensor("t", Type::f32, {4});
    writer.begin();
    EXPECT_EQ(read_file(dir / "m.gguf"), "older");
    EXPECT_TRUE(std::filesystem::exists(dir / "m.gguf.partial"));
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "m.gguf.partial")) << "left behind";
  EXPECT_EQ(read_file(dir / "m.gguf"), "older");

  write_sample(dir / "m.gguf", 3, 0, 4096);
  EXPECT_FALSE(std::filesystem::exists(dir / "m.gguf.partial"));
  EXPECT_EQ(ModelFile::open(dir / "m.gguf").tensors().size(), several_tensors().size());
}

TEST(Writer, RefusesTooFewAndTooManyBytes) {
  const TempDir dir;
  const auto data = random_bytes(1, 17);
  {
    Writer writer(dir / "m.gguf");
    writer.add_tensor("first", Type::f32, {1});
    writer.add_tensor("second", Type::f32, {3});
    writer.begin();
    writer.write(std::span(data).first(15));
    EXPECT_EQ(error_of([&] { writer.finish(); }),
              (dir / "m.gguf") + ": tensor 'second' got 11 bytes; expected 12");
  }
  {
    Writer writer(dir / "m.gguf");
    writer.add_tensor("first", Type::f32, {4});
    writer.begin();
    EXPECT_PRED2(contains, error_of([&] { writer.write(data); }), "1 bytes came after the last");
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Writer, RefusesDeclarationsThatNoReaderWouldAccept) {
  const TempDir dir;
  const auto error_with = [&](const auto& declare) {
    return error_of([&] {
      Writer writer(dir / "m.gguf");
      declare(writer);
      writer.begin();
    });
  };
  const auto tensor = [&](std::string name, Type type, std::vector<int64_t> shape) {
    return error_with([&](Writer& w) { w.add_tensor(name, type, shape); });
  };
  EXPECT_PRED2(contains, tensor("", Type::f32, {1}), "1 to 63");
  EXPECT_PRED2(contains, tensor(std::string(64, 'x'), Type::f32, {1}), "has 64 bytes");
  EXPECT_PRED2(contains, tensor("t", Type::q4_k, {32}), "multiple of 256");
  EXPECT_PRED2(contains, tensor("t", Type::f32, {-1}), "no negative");
  EXPECT_PRED2(contains, tensor("t", Type::f32, {1, 1, 1, 1, 1}), "5 dimensions");
  EXPECT_PRED2(contains, tensor("t", Type::f32, {int64_t{1} << 61}), "too long");
  EXPECT_PRED2(contains, error_with([](Writer& w) {
                 w.add_tensor("t", Type::f32, {1});
                 w.add_tensor("t", Type::f32, {1});
               }),
               "more than once");
  EXPECT_PRED2(contains, error_with([](Writer& w) { w.metadata().set("", 1u); }),
               "key '' has 0 bytes");
  EXPECT_PRED2(contains, error_with([](Writer& w) { w.metadata().set("general.alignment", 48u); }),
               "is 48");
}

// Each of them fits, and so do two; three do not, and eight would be 2^64 bytes, which are none.
TEST(Writer, RefusesTensorsThatTogetherAreTooLong) {
  constexpr int64_t kLong = int64_t{1} << 61;
  const TempDir dir;
  for (const int n_tensors : {1, 2, 3, 8, 9}) {
    const auto begin = [&] {
      Writer writer(dir / "m.gguf");
      for (int i = 0; i < n_tensors; ++i) {
        writer.add_tensor(cat("t", i), *quant::find_type_info(24), {kLong});
      }
      writer.begin();
    };
    if (n_tensors <= 2) {
      EXPECT_NO_THROW(begin()) << n_tensors;
    } else {
      const std::string text = error_of(begin);
      EXPECT_PRED2(contains, text, "tensor 't2' of 2305843009213693952 bytes");
      EXPECT_PRED2(contains, text, "expected at most 4611686018427387904 bytes");
    }
  }
}

TEST(Writer, SaysWhenAndWhyTheDiskRefuses) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/full", dir / "m.gguf.partial");
  {
    Writer writer(dir / "m.gguf");
    writer.add_tensor("t", *quant::find_type_info(24), {2 << 20});
    writer.begin();
    const std::string text = error_of([&] { writer.write(random_bytes(1, 2 << 20)); });
    EXPECT_PRED2(contains, text, "m.gguf.partial: cannot be written");
    EXPECT_PRED2(contains, text, "No space left on device");
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_PRED2(contains, error_of([&] { Writer(dir / "none/m.gguf"); }),
               "none/m.gguf.partial: cannot be created after 0 B (No such file or directory)");
}

TEST(WriterDeathTest, CallsOutOfOrderStop) {
  const TempDir dir;
  Writer writer(dir / "m.gguf");
  EXPECT_DEATH(writer.write({}), "alignment_ != 0");
  EXPECT_DEATH(writer.finish(), "alignment_ != 0");
  writer.begin();
  EXPECT_DEATH(writer.begin(), "alignment_ == 0");
  EXPECT_DEATH(writer.add_tensor("t", Type::f32, {1}), "alignment_ == 0");
}

}  // namespace
}  // namespace sluice::gguf::test
