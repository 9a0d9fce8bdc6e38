// What a program may use of the shared library is marked SLUICE_API; all else in it is hidden, and
// src/libsluice.map says the same to the linker. Marked SLUICE_HIDDEN: what would be seen because
// it is part of something marked. For C and C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__GNUC__)
#define SLUICE_API __attribute__((visibility("default")))
#define SLUICE_HIDDEN __attribute__((visibility("hidden")))
#else
#define SLUICE_API
#define SLUICE_HIDDEN
#endif
