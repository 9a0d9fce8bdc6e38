// The end of a measuring program: what went wrong is one line, and the exit code 1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <exception>

namespace sluice::bench {

template <typename Run>
int bench_main(const Run& run) {
  try {
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

}  // namespace sluice::bench
