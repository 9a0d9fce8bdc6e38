// Says so in one line when this machine lacks the instructions that sluice was compiled for, before
// the first of them can kill the program. This file alone is compiled for any x86-64.
// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)

#include <unistd.h>

namespace {

__attribute__((constructor(101))) void check_cpu() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return;
  }
  constexpr char kText[] =
      "sluice: error: this CPU lacks AVX2, FMA or BMI2, which sluice needs (Intel since 2013, AMD "
      "since 2015)\n";
  if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) _exit(1);
  _exit(1);
}

}  // namespace

#endif
