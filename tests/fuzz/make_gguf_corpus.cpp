// Writes the hand-made part of corpus/gguf: the unit tests' broken files, and valid ones that lead
// the fuzzer past the checks.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "unit/gguf/broken_files.h"
#include "unit/gguf/file_bytes.h"

namespace sluice::gguf::test {
namespace {

std::string file_with_every_scalar() {
  FileBytes file(0, 12);
  file.key("u8", kU8).put(uint8_t{1}).key("i8", kI8).put(int8_t{-1});
  file.key("u16", kU16).put(uint16_t{1}).key("i16", kI16).put(int16_t{-1});
  file.key("u32", kU32).put(uint32_t{1}).key("i32", kI32).put(int32_t{-1});
  file.key("u64", kU64).put(~uint64_t{0}).key("i64", kI64).put(int64_t{-1});
  file.key("f32", kF32).put(1.5f).key("f64", kF64).put(1e300);
  file.key("bool", kBool).put(uint8_t{1}).key("string", kString).text("text");
  return file.str();
}

std::string file_with_every_array() {
  FileBytes file(0, 12);
  const std::pair<int32_t, size_t> types[] = {{kU8, 1},  {kI8, 1},  {kU16, 2}, {kI16, 2},
                                              {kU32, 4}, {kI32, 4}, {kF32, 4}, {kBool, 1},
                                              {kU64, 8}, {kI64, 8}, {kF64, 8}, {kString, 8}};
  for (const auto& [type, size] : types) {
    file.array(std::string("a") + static_cast<char>('a' + type), type, 3).zeros(3 * size);
  }
  return file.str();
}

std::string file_with_alignment(uint32_t alignment) {
  FileBytes file(2, 1);
  file.key("general.alignment", kU32).put(alignment);
  file.tensor("a", {4}, kTensorF32, 0).tensor("b", {256}, kTensorQ4_K, alignment);
  return file.pad(alignment).zeros(alignment + 144).str();
}

std::string shard() {
  FileBytes file(1, 3);
  file.key("split.no", kU16).put(uint16_t{0}).key("split.count", kU16).put(uint16_t{2});
  file.key("split.tensors.count", kI32).put(int32_t{2});
  return file.tensor("blk.0.ffn_up_exps.weight", {256, 2, 2}, kTensorIQ2_XXS, 0)
      .pad()
      .zeros(4 * 66)
      .str();
}

std::vector<std::pair<std::string, std::string>> corpus() {
  std::vector<std::pair<std::string, std::string>> out = {
      {"valid_small", small_valid_file()},
      {"valid_nothing", FileBytes(0, 0).str()},
      {"valid_version_2", FileBytes(0, 0, 2).str()},
      {"valid_scalars", file_with_every_scalar()},
      {"valid_arrays", file_with_every_array()},
      {"valid_alignment_8", file_with_alignment(8)},
      {"valid_alignment_1024", file_with_alignment(1024)},
      {"valid_shard", shard()},
  };
  for (const BrokenFile& file : broken_files()) {
    // Six of the eight removed types would only repeat the other two.
    if (file.name.starts_with("removed_type_3")) continue;
    out.emplace_back("broken_" + file.name, file.bytes);
  }
  return out;
}

}  // namespace
}  // namespace sluice::gguf::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <corpus folder>\n", argv[0]);
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  for (const auto& [name, bytes] : sluice::gguf::test::corpus()) {
    std::ofstream(std::filesystem::path(argv[1]) / name, std::ios::binary) << bytes;
  }
  return 0;
}
