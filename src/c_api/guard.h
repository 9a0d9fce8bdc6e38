// How functions of sluice_c.h fail: every body runs in guarded() or guarded_pointer(), which let no
// exception out and keep its text for the calling thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/error.h"
#include "sluice/sluice_c.h"

namespace sluice::c_api {

// Keeps a failure for this thread, and returns its status.
int fail(int status, const char* text) noexcept;
// The same for the exception that is being handled.
int fail_by_exception() noexcept;

// f: -> status.
template <typename F>
int guarded(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return fail_by_exception();
  }
}

// f: -> a pointer; NULL where it throws.
template <typename F>
auto guarded_pointer(F&& f) noexcept -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    fail_by_exception();
    return nullptr;
  }
}

template <typename T>
T& require(T* pointer, const char* what) {
  if (!pointer) throw Error(Errc::bad_request, cat(what, " is NULL"));
  return *pointer;
}

// n elements at NULL are none, if n is 0.
template <typename T>
T* require_array(T* pointer, size_t n, const char* what) {
  if (!pointer && n > 0) throw Error(Errc::bad_request, cat(what, " is NULL, of ", n, " elements"));
  return pointer;
}

// A handle whose function is running: whoever uses the handle meanwhile is refused, be it a
// callback of that function or another thread.
class InUse {
 public:
  InUse(bool& is_used, const char* what) : is_used_(is_used) {
    if (std::atomic_ref(is_used_).exchange(true)) {
      throw Error(
          Errc::bad_request,
          cat(what, " is in use: wait until its function has returned; callbacks may not call it"));
    }
  }
  ~InUse() { std::atomic_ref(is_used_).store(false); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  bool& is_used_;
};

// Frees a handle, unless its function is running: that needs it still. NULL is nothing to free.
template <typename T>
void free_unused(T* handle, const char* refusal) noexcept {
  if (handle && std::atomic_ref(handle->is_used).load()) {
    fail(SLUICE_BAD_REQUEST, refusal);
  } else {
    std::unique_ptr<T>{handle};
  }
}

}  // namespace sluice::c_api
