// See standard_output.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/error.h"

namespace sluice::cli {
namespace {

// stdio keeps the fact that a write failed, but neither its reason nor the text: a flush after it
// succeeds. So one more byte is tried, which meets the same disk or pipe.
int reason_of_earlier_failure() { return ::write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO; }

}  // namespace

void require_output() {
  errno = 0;
  int reason = 0;
  if (std::fflush(stdout) != 0) {
    reason = errno;
  } else if (std::ferror(stdout) != 0) {
    reason = reason_of_earlier_failure();
  }
  if (reason == 0) return;
  throw Error(Errc::bad_request,
              cat("standard output cannot be written (", std::generic_category().message(reason),
                  "); expected a place with enough room, and a reader"));
}

}  // namespace sluice::cli
