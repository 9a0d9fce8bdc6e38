// Counts every request for memory of a test program, and refuses one where a test says so. Replaces
// operator new, so one source of a program includes it, and all its tests are counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace sluice::test {

inline std::atomic<uint64_t> n_requests{0};

// While it lives, the request after the next n_before ones, of any thread, finds no memory.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t n_before) { n_left() = n_before; }
  ~FailingAllocation() { n_left() = -1; }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  static bool is_due() { return n_left() >= 0 && n_left().fetch_sub(1) == 0; }

 private:
  static std::atomic<int64_t>& n_left() {
    static std::atomic<int64_t> n{-1};
    return n;
  }
};

// Null where there is none.
inline void* request(size_t n, size_t alignment) {
  ++n_requests;
  if (FailingAllocation::is_due()) return nullptr;
  const size_t whole = (n + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole > 0 ? whole : alignment);
}

}  // namespace sluice::test

// The array forms call these; those that do not throw would else be a sanitizer's, whose blocks
// free() refuses. Not inline, and free() by itself, so that GCC pairs them.
[[gnu::noinline]] void* operator new(size_t n) {
  if (void* block = sluice::test::request(n, alignof(std::max_align_t))) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n, std::align_val_t alignment) {
  if (void* block = sluice::test::request(n, static_cast<size_t>(alignment))) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  return sluice::test::request(n, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t n, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  return sluice::test::request(n, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t, std::align_val_t) noexcept {
  std::free(block);
}
