// A table of files that must be refused, each with what the error must say. Used by the parser's
// tests and as seeds of the fuzzer's corpus.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "unit/gguf/file_bytes.h"

namespace sluice::gguf::test {

struct BrokenFile {
  std::string name;  // completes "refuses ..."
  std::string bytes;
  std::vector<std::string> facts;  // found and expected, as they stand in the message
};

inline void PrintTo(const BrokenFile& file, std::ostream* out) { *out << file.name; }

constexpr int64_t kHuge = int64_t{1} << 62;

inline std::vector<BrokenFile> broken_headers() {
  return {
      {"three_bytes", "GGU", {"has 3 bytes", "at least the 24"}},
      {"a_header_cut_short", FileBytes(0, 0).str().substr(0, 23), {"has 23 bytes", "24"}},
      {"another_magic", FileBytes().raw("GGML").zeros(20).str(), {"'GGML'", "'GGUF'"}},
      {"a_git_lfs_pointer", "version https://git-lfs.github.com/spec/v1", {"'vers'", "'GGUF'"}},
      {"version_0", FileBytes(0, 0, 0).str(), {"version 0", "expected 2 or 3"}},
      {"version_1", FileBytes(0, 0, 1).str(), {"version 1", "expected 2 or 3", "convert"}},
      {"version_4", FileBytes(0, 0, 4).str(), {"version 4", "expected 2 or 3"}},
      {"a_byte_swapped_file", FileBytes(0, 0, 0x03000000).str(), {"byte-swapped", "little endian"}},
      {"negative_key_count", FileBytes(0, -1).str(), {"-1 keys", "0 or more"}},
      {"negative_tensor_count", FileBytes(-7, 0).str(), {"-7 tensors", "0 or more"}},
      {"a_huge_key_count",
       FileBytes(0, kHuge).zeros(100).str(),
       {"4611686018427387904 keys", "only 100 bytes", "at least 14 bytes for each"}},
      {"one_key_too_many", FileBytes(0, 8).zeros(111).str(), {"8 keys", "only 111 bytes"}},
      {"a_huge_tensor_count",
       FileBytes(kHuge, 0).zeros(100).str(),
       {"4611686018427387904 tensors", "only 100 bytes", "at least 25 bytes for each"}},
      {"one_tensor_too_many", FileBytes(5, 0).zeros(124).str(), {"5 tensors", "only 124 bytes"}},
  };
}

inline std::vector<BrokenFile> broken_keys() {
  const auto one_key = [] { return FileBytes(0, 1); };
  return {
      {"a_key_name_longer_than_the_file",
       one_key().put(uint64_t{1000}).zeros(20).str(),
       {"ends after 52 bytes", "the name of key 0", "expected 1000 bytes from byte 32"}},
      {"a_key_name_beyond_the_limit",
       one_key().put(uint64_t{1} << 40).zeros(20).str(),
       {"1099511627776 bytes", "the name of key 0", "at most 1073741824"}},
      {"a_key_name_of_all_ones",
       one_key().put(~uint64_t{0}).zeros(20).str(),
       {"18446744073709551615 bytes", "at most 1073741824"}},
      {"an_empty_key",
       one_key().key("", kU32).zeros(20).str(),
       {"key '' has 0 bytes", "1 to 65535"}},
      {"a_key_that_occurs_twice",
       FileBytes(0, 2).key("twice", kU8).zeros(1).key("twice", kU8).zeros(1).str(),
       {"'twice'", "more than once", "unique"}},
      {"value_type_13",
       one_key().key("k", 13).zeros(20).str(),
       {"value type 13", "key 'k'", "0 to 12"}},
      {"value_type_minus_1",
       one_key().key("k", -1).zeros(20).str(),
       {"value type -1", "key 'k'", "0 to 12"}},
      {"element_type_13",
       one_key().array("k", 13, 1).zeros(20).str(),
       {"value type 13", "key 'k'", "0 to 12"}},
      {"an_array_of_arrays",
       one_key().array("k", kArray, 1).zeros(20).str(),
       {"array of arrays", "key 'k'", "numbers, bools or strings"}},
      {"a_value_cut_short",
       one_key().key("k", kU64).zeros(7).str(),
       {"ends after 44 bytes", "key 'k'", "expected 8 bytes from byte 37"}},
      {"a_string_longer_than_the_file",
       one_key().key("k", kString).put(uint64_t{50}).zeros(49).str(),
       {"ends after 94 bytes", "key 'k'", "expected 50 bytes from byte 45"}},
      {"an_array_longer_than_the_file",
       one_key().array("k", kI32, 3).zeros(11).str(),
       {"ends after 60 bytes", "key 'k'", "expected 12 bytes from byte 49"}},
      {"an_array_beyond_the_limit",
       one_key().array("k", kU8, kHuge).zeros(11).str(),
       {"4611686018427387904 elements", "key 'k'", "at most 1073741824"}},
      {"an_array_of_a_billion_doubles",
       one_key().array("k", kF64, 1 << 30).zeros(11).str(),
       {"expected 8589934592 bytes"}},
      {"an_array_whose_bytes_overflow_to_none",
       one_key().array("k", kF64, int64_t{1} << 61).zeros(11).str(),
       {"2305843009213693952 elements", "key 'k'", "at most 1073741824"}},
      {"a_string_array_without_room_for_its_lengths",
       one_key().array("k", kString, 1 << 20).zeros(800).str(),
       {"key 'k'", "expected 8388608 bytes from byte 49"}},
      {"a_string_array_whose_last_string_is_cut",
       one_key().array("k", kString, 2).text("ok").put(uint64_t{9}).zeros(8).str(),
       {"key 'k'", "expected 9 bytes"}},
      {"a_name_that_forges_a_second_line",
       one_key().key("evil\nkey\x1b\xff", 99).zeros(20).str(),
       {"'evil\\x0akey\\x1b\\xff'"}},
      {"a_very_long_name",
       one_key().key(std::string(1000, 'x'), 99).zeros(20).str(),
       {cat("'", std::string(60, 'x'), "...'")}},
  };
}

inline std::vector<BrokenFile> broken_alignments() {
  const auto with = [](auto value, int32_t type) {
    return FileBytes(0, 1).key("general.alignment", type).put(value).str();
  };
  const std::string range = "a power of two from 8 to 2097152";
  return {
      {"alignment_0", with(uint32_t{0}, kU32), {"'general.alignment'", "is 0", range}},
      {"alignment_4", with(uint32_t{4}, kU32), {"'general.alignment'", "is 4", range}},
      {"alignment_48", with(uint32_t{48}, kU32), {"'general.alignment'", "is 48", range}},
      {"alignment_2_31", with(uint32_t{1} << 31, kU32), {"is 2147483648", range}},
      {"an_alignment_of_type_u64",
       with(uint64_t{32}, kU64),
       {"'general.alignment'", "type u64", "expected u32"}},
  };
}

inline std::vector<BrokenFile> broken_tensors() {
  const auto one = [](std::initializer_list<int64_t> shape, int32_t type, uint64_t offset = 0) {
    return FileBytes(1, 0).tensor("t", shape, type, offset).pad().zeros(128).str();
  };
  std::vector<BrokenFile> out = {
      {"an_empty_tensor_name",
       FileBytes(1, 0).tensor("", {1}, 0, 0).pad().zeros(32).str(),
       {"has 0 bytes", "1 to 63"}},
      {"a_tensor_name_of_64_bytes",
       FileBytes(1, 0).tensor(std::string(64, 'n'), {1}, 0, 0).pad().zeros(32).str(),
       {"'nnn", "has 64 bytes", "1 to 63"}},
      {"two_tensors_of_one_name",
       FileBytes(2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).pad().zeros(64).str(),
       {"'t'", "more than once", "unique"}},
      {"five_dimensions", one({1, 1, 1, 1, 1}, kTensorF32), {"'t'", "5 dimensions", "at most 4"}},
      {"a_billion_dimensions",
       FileBytes(1, 0).text("t").put(1u << 30).zeros(64).str(),
       {"'t'", "1073741824 dimensions", "at most 4"}},
      {"a_negative_dimension", one({4, -2}, kTensorF32), {"'t'", "[4, -2]", "no negative"}},
      {"more_elements_than_an_i64",
       one({kHuge, 2}, kTensorF32),
       {"'t'", "[4611686018427387904, 2]", "fewer than 2^63 elements"}},
      {"elements_that_overflow_to_none",
       one({int64_t{1} << 32, int64_t{1} << 32}, kTensorF32),
       {"'t'", "[4294967296, 4294967296]", "fewer than 2^63 elements"}},
      {"two_negative_dimensions", one({-4, -2}, kTensorF32), {"'t'", "[-4, -2]", "no negative"}},
      {"bytes_that_overflow_to_none_in_the_last_dimension",
       one({1 << 20, 1 << 20, 1 << 20, 4}, kTensorF64),
       {"'t'", "F64", "fewer than 2^64 bytes"}},
      {"an_overflow_behind_an_empty_dimension",
       one({0, kHuge, 2}, kTensorF32),
       {"'t'", "fewer than 2^63 elements"}},
      {"more_bytes_than_a_u64", one({kHuge}, kTensorF64), {"'t'", "F64", "fewer than 2^64 bytes"}},
      {"rows_of_half_a_block",
       one({128, 2}, kTensorQ4_K),
       {"'t'", "Q4_K", "rows of 128", "multiple of 256"}},
      {"a_scalar_of_a_block_type", one({}, kTensorQ4_0), {"'t'", "Q4_0", "rows of 1 "}},
      {"an_unknown_type_id", one({1}, 1000), {"'t'", "unknown type id 1000"}},
      {"a_negative_type_id", one({1}, -1), {"'t'", "unknown type id -1"}},
      {"an_offset_off_the_alignment",
       one({1}, kTensorF32, 16),
       {"'t'", "offset 16", "multiple of the alignment, 32"}},
      {"a_tensor_that_starts_in_the_file_and_ends_outside",
       one({33}, kTensorF32),
       {"'t' of 132 bytes", "has 192 bytes", "at least 196", "incomplete download"}},
      {"a_tensor_outside_the_file",
       one({1}, kTensorF32, 1 << 20),
       {"'t'", "has 192 bytes", "at least 1048644 (1.00 MiB)", "incomplete download"}},
      {"an_offset_that_overflows",
       one({1}, kTensorF32, ~uint64_t{31}),
       {"'t'", "beyond the end of the file"}},
      {"an_end_that_overflows",
       one({(int64_t{1} << 61) - 1}, kTensorF64, uint64_t{1} << 63),
       {"'t'", "beyond the end of the file"}},
      // 2^63 + 2^63 bytes: 0 once more, so that the end seems to lie where the data begins.
      {"an_end_that_overflows_into_the_file",
       one({int64_t{1} << 60}, kTensorF64, uint64_t{1} << 63),
       {"'t' of 9223372036854775808 bytes", "beyond the end of the file"}},
      {"the_longest_tensor_that_ends_at_the_first_byte_of_the_file",
       one({(int64_t{1} << 61) - 8}, kTensorF64, 0),
       {"'t' of 18446744073709551552 bytes", "beyond the end of the file"}},
      {"an_offset_that_overflows_to_the_start_of_the_data",
       one({1}, kTensorF32, ~uint64_t{63}),
       {"'t'", "beyond the end of the file"}},
      {"an_empty_tensor_outside_the_file", one({0}, kTensorF32, 160), {"'t' of 0 bytes"}},
      {"tensors_that_overlap",
       FileBytes(2, 0).tensor("b", {4}, 0, 32).tensor("a", {9}, 0, 0).pad().zeros(64).str(),
       {"'a' (bytes 96 to 132)", "'b' (from byte 128)", "overlap", "separate"}},
      {"tensors_in_one_place",
       FileBytes(2, 0).tensor("a", {4}, 0, 0).tensor("b", {4}, 0, 0).pad().zeros(64).str(),
       {"'a'", "'b'", "overlap"}},
      {"a_tensor_info_cut_short",
       FileBytes(1, 0).text("tensor").put(2).put(int64_t{4}).str(),
       {"ends after 50 bytes", "tensor 'tensor'", "expected 8 bytes from byte 50"}},
      {"a_tensor_name_longer_than_the_file",
       FileBytes(1, 0).put(uint64_t{63}).zeros(40).str(),
       {"the name of tensor 0", "expected 63 bytes"}},
  };
  for (const int32_t id : {4, 5, 31, 32, 33, 36, 37, 38}) {
    out.push_back({"removed_type_" + std::to_string(id),
                   one({32}, id),
                   {"'t'", "type id " + std::to_string(id), "removed", "quantise"}});
  }
  return out;
}

inline std::vector<BrokenFile> broken_files() {
  std::vector<BrokenFile> out;
  for (auto&& part : {broken_headers(), broken_keys(), broken_alignments(), broken_tensors()}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace sluice::gguf::test
