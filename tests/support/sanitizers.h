// Which sanitizers the tests, and so the program, are compiled with: they change how much memory a
// process takes and what a failing allocation does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__has_feature)
#define SLUICE_HAS_FEATURE(x) __has_feature(x)
#else
#define SLUICE_HAS_FEATURE(x) 0
#endif

namespace sluice::test {

#if defined(__SANITIZE_ADDRESS__) || SLUICE_HAS_FEATURE(address_sanitizer)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || SLUICE_HAS_FEATURE(thread_sanitizer)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace sluice::test
