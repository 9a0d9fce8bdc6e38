// See style.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"

namespace sluice::cli {

bool is_smart_terminal() {
  const char* kind = std::getenv("TERM");
  return kind && *kind && std::string_view(kind) != "dumb";
}

bool has_style(int file) {
  const char* forbidden = std::getenv("NO_COLOR");
  return isatty(file) == 1 && is_smart_terminal() && !(forbidden && *forbidden);
}

std::string dimmed_on_stderr(std::string_view text) {
  if (!has_style(STDERR_FILENO)) return std::string(text);
  return cat("\x1b[2m", text, "\x1b[22m");
}

int terminal_columns(int file) {
  struct winsize size {};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace sluice::cli
