// See text_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/text_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "base/error.h"

namespace sluice::cli {
namespace {

[[noreturn]] void fail(const std::string& name, const char* problem) {
  throw Error(Errc::bad_request,
              cat(name, " cannot be ", problem, " (", std::generic_category().message(errno),
                  "); expected a file with text"));
}

std::string read_all(std::FILE* in, const std::string& name) {
  std::string bytes;
  char buffer[65536];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, in)) bytes.append(buffer, n);
  if (std::ferror(in)) fail(name, "read");
  return bytes;
}

}  // namespace

std::string read_text_file(const std::string& path) {
  if (path == "-") return read_all(stdin, "standard input");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) fail(path, "opened");
  return read_all(file.get(), path);
}

bool has_piped_input() {
  struct stat status {};
  return ::fstat(STDIN_FILENO, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

}  // namespace sluice::cli
