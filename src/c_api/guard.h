// How functions of sluice_c.h fail: every body runs in guarded() or guarded_pointer(), which let no
// exception out and keep its text for the calling thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// A handle whose function is running: a callback of it that uses the handle again is refused.
class InUse {
 public:
  InUse(bool& is_used, const char* what) : is_used_(is_used) {
    if (is_used_) {
      throw Error(Errc::bad_request, cat(what, " is in use: its callback may not call it again"));
    }
    is_used_ = true;
  }
  ~InUse() { is_used_ = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  bool& is_used_;
};

}  // namespace sluice::c_api
