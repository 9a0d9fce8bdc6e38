// See guard.h; and what a thread's last failure was.
// SPDX-License-Identifier: Apache-2.0
#include "c_api/guard.h"

#include <exception>
#include <new>
#include <string>

namespace sluice::c_api {
namespace {

struct LastError {
  int status = SLUICE_OK;
  std::string text;
};

// Of each thread; the only variable of the library that outlives a call.
LastError& last_error() {
  thread_local LastError error;
  return error;
}

constexpr const char* kNoMemory = "out of memory; use a smaller context or a smaller model";

int status_of(Errc code) {
  switch (code) {
    case Errc::bad_file:
      return SLUICE_BAD_FILE;
    case Errc::unsupported_model:
      return SLUICE_UNSUPPORTED_MODEL;
    case Errc::out_of_memory:
      return SLUICE_OUT_OF_MEMORY;
    case Errc::bad_request:
      return SLUICE_BAD_REQUEST;
    case Errc::cancelled:
      return SLUICE_CANCELLED;
    case Errc::device:
      return SLUICE_DEVICE;
    case Errc::busy:
    case Errc::shutting_down:  // of engines, which are not offered here
      break;
  }
  return SLUICE_INTERNAL;
}

}  // namespace

int fail(int status, const char* text) noexcept {
  LastError& error = last_error();
  error.status = status;
  try {
    error.text = text;
  } catch (...) {  // no memory, not even for the text
    error.text.clear();
    error.status = SLUICE_OUT_OF_MEMORY;
  }
  return error.status;
}

int fail_by_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(SLUICE_OUT_OF_MEMORY, kNoMemory);
  } catch (const std::exception& error) {
    return fail(SLUICE_INTERNAL, error.what());
  } catch (...) {
    return fail(SLUICE_INTERNAL, "a callback threw something that is no std::exception");
  }
}

}  // namespace sluice::c_api

using sluice::c_api::last_error;

const char* sluice_last_error() {
  const auto& error = last_error();
  if (error.text.empty() && error.status != SLUICE_OK) return sluice::c_api::kNoMemory;
  return error.text.c_str();
}

int sluice_last_status() { return last_error().status; }

const char* sluice_version() { return SLUICE_VERSION; }
