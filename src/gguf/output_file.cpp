// See output_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::gguf {
namespace {

constexpr size_t kBufferBytes = kMiB;
constexpr size_t kMaxWrite = 64 * kMiB;  // so that a signal is not kept waiting for gigabytes

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), partial_path_(path_ + ".partial") {
  buffer_.reserve(kBufferBytes);
  fd_ = ::open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be created");
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_path_.c_str());
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
  // Without it, a power cut after the rename could leave a whole name on half a file.
  if (::fsync(fd_) != 0) fail("cannot be saved to disk");
  if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
  ::close(std::exchange(fd_, -1));
}

}  // namespace sluice::gguf
