// See output_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice {
namespace {

constexpr size_t kBufferBytes = kMiB;
constexpr size_t kMaxWrite = 64 * kMiB;  // so that a signal is not kept waiting for gigabytes

// What a rename must replace. /dev/stdout is a link too, and into a file it leads to that file.
std::string without_links(std::string path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

// A name that is taken, but not by a file.
bool is_special(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  const bool direct = is_special(path_);
  if (!direct) path_ = without_links(std::move(path_));
  partial_path_ = direct ? path_ : path_ + ".partial";
  buffer_.reserve(kBufferBytes);
  const int flags = direct ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  fd_ = ::open(partial_path_.c_str(), flags, 0666);
  if (fd_ < 0) fail(direct ? "cannot be opened" : "cannot be created");
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!is_direct()) ::unlink(partial_path_.c_str());
}

void OutputFile::fail(const char* what) const {
  const std::string reason = std::generic_category().message(errno);
  throw Error(Errc::bad_file,
              cat(partial_path_, ": ", what, " after ", format_bytes(bytes_written_), " (", reason,
                  "); expected a writable place with enough room"));
}

void OutputFile::write_out(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxWrite));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::flush() {
  write_out(buffer_);
  buffer_.clear();
}

void OutputFile::append(std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0);
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) {
    write_out(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  bytes_written_ += bytes.size();
}

void OutputFile::append_zeros(uint64_t n) {
  static constexpr std::byte kZeros[4096] = {};
  while (n > 0) {
    const auto piece = std::span(kZeros).first(std::min<uint64_t>(n, sizeof(kZeros)));
    append(piece);
    n -= piece.size();
  }
}

void OutputFile::commit() {
  CHECK(fd_ >= 0);
  flush();
  if (!is_direct()) {
    // Without it, a power cut after the rename could leave a whole name on half a file.
    if (::fsync(fd_) != 0) fail("cannot be saved to disk");
    if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
  }
  ::close(std::exchange(fd_, -1));
}

}  // namespace sluice
