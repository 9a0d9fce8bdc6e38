// CHECK for promises our own code makes to itself, on in release builds too; DCHECK for inner
// loops. Never for input from outside: that is an Error (error.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace sluice

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::sluice::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define DCHECK(condition) static_cast<void>(0)
#else
#define DCHECK(condition) CHECK(condition)
#endif
