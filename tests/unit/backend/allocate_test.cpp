// Memory of the CPU backend.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "backend/ops.h"
#include "base/error.h"

// A sanitizer ends the process for a request beyond its own limit, unless it is told to return null
// as the system does.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace sluice::backend::test {
namespace {

TEST(Allocate, GivesAlignedMemoryOfTheWantedSize) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  for (const uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{4097}}) {
    const Buffer buffer = ops->allocate(n);
    EXPECT_EQ(buffer.n_bytes(), n);
    EXPECT_NE(buffer.data(), nullptr) << n;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u) << n;
    std::memset(buffer.data(), 0x5a, n);
  }
}

TEST(Allocate, ABufferMovesAndLeavesNothingBehind) {
  ThreadPool pool(1);
  Buffer first = make_cpu_ops(pool)->allocate(16);
  float* data = first.as<float>();
  data[3] = 2.5f;
  Buffer second = std::move(first);
  EXPECT_EQ(second.as<float>(), data);
  EXPECT_EQ(second.as<float>()[3], 2.5f);
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(Buffer().data(), nullptr);
}

TEST(Allocate, SaysHowMuchItCouldNotGet) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  for (const uint64_t n : {uint64_t{1} << 60, ~uint64_t{0}}) {
    try {
      ops->allocate(n);
      ADD_FAILURE() << n << " bytes were granted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_memory);
      EXPECT_NE(
          std::string(error.what()).find(n == ~uint64_t{0} ? "17179869184 GiB" : "1073741824 GiB"),
          std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
