// Counts every request for memory of a test program. Replaces operator new, so one source of a
// program includes it, and all its tests are counted. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace sluice::test {

inline std::atomic<uint64_t> n_requests{0};

}  // namespace sluice::test

// The array forms call these; the one that does not throw would else be a sanitizer's, whose blocks
// free() refuses. Not inline, and free() by itself, so that GCC pairs them.
[[gnu::noinline]] void* operator new(size_t n) {
  ++sluice::test::n_requests;
  if (void* block = std::malloc(n > 0 ? n : 1)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  ++sluice::test::n_requests;
  return std::malloc(n > 0 ? n : 1);
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }
