// A file cannot make the parser allocate what the file does not hold: all memory that the program
// asks for is counted here while liars are parsed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "base/units.h"
#include "gguf/parse.h"
#include "unit/gguf/broken_files.h"

namespace {

std::atomic<uint64_t> bytes_requested{0};

void* counted_alloc(size_t n) {
  bytes_requested += n;
  if (void* block = std::malloc(n > 0 ? n : 1)) return block;
  throw std::bad_alloc();
}

}  // namespace

// The array forms call these. Not inline, and free() by itself, so that GCC pairs them.
void* operator new(size_t n) { return counted_alloc(n); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace sluice::gguf::test {
namespace {

uint64_t bytes_requested_by_parsing(const std::string& bytes) {
  const uint64_t before = bytes_requested;
  try {
    parse(as_bytes(bytes), "m.gguf");
  } catch (const Error&) {
  }
  return bytes_requested - before;
}

TEST(ParseAllocation, TheCounterCounts) {
  const uint64_t before = bytes_requested;
  const std::vector<char> block(100 * kKiB);
  EXPECT_GE(bytes_requested - before, block.size());
}

TEST(ParseAllocation, NoBrokenFileMakesTheParserAllocateAMegabyte) {
  for (const BrokenFile& file : broken_files()) {
    EXPECT_LT(bytes_requested_by_parsing(file.bytes), kMiB) << file.name;
  }
}

// Each of these claims as much as its own length lets it claim.
TEST(ParseAllocation, WhatTheBytesCouldHoldIsASmallMultipleOfThem) {
  constexpr size_t kTail = 64 * kKiB;
  const std::pair<const char*, std::string> liars[] = {
      {"strings", FileBytes(0, 1).array("k", kString, kTail / 8).zeros(kTail).str()},
      {"bools", FileBytes(0, 1).array("k", kBool, kTail).zeros(kTail).str()},
      {"doubles", FileBytes(0, 1).array("k", kF64, kTail / 8).zeros(kTail).str()},
      {"keys", FileBytes(0, kTail / 14).zeros(kTail).str()},
      {"tensors", FileBytes(kTail / 25, 0).zeros(kTail).str()},
  };
  for (const auto& [name, bytes] : liars) {
    EXPECT_LT(bytes_requested_by_parsing(bytes), 8 * bytes.size()) << name;
  }
}

}  // namespace
}  // namespace sluice::gguf::test
