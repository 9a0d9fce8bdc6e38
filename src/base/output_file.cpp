// See output_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
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

// The names of open partial files. Global, and without locks, for the sake of signal handlers,
// which can use neither an object nor a lock. Whoever takes a name out of the list may use the
// string.
constexpr size_t kMaxListed = 64;  // a file beyond that is not removed by a signal
std::array<std::atomic<const char*>, kMaxListed> partial_names{};
// And those that a handler has taken and may not have removed yet: a second one, of another signal
// or in another thread, ends the program, so it removes them too.
std::array<std::atomic<const char*>, kMaxListed> taken_names{};
std::atomic<bool> is_ending{false};
static_assert(std::atomic<const char*>::is_always_lock_free);

[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

// Where the name stands now; -1: the list is full.
int list_partial(const char* name) {
  int at = -1;
  for (size_t i = 0; i < kMaxListed && at < 0; ++i) {
    const char* none = nullptr;
    if (partial_names[i].compare_exchange_strong(none, name)) at = static_cast<int>(i);
  }
  if (is_ending) wait_for_the_end();
  return at;
}

}  // namespace

void remove_partial_files() noexcept {
  is_ending = true;
  for (size_t i = 0; i < kMaxListed; ++i) {
    if (const char* const name = partial_names[i].exchange(nullptr)) taken_names[i] = name;
  }
  for (const auto& taken : taken_names) {
    if (const char* const name = taken) ::unlink(name);
  }
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  const bool direct = is_special(path_);
  if (!direct) path_ = without_links(std::move(path_));
  partial_path_ = direct ? path_ : path_ + ".partial";
  buffer_.reserve(kBufferBytes);
  const int flags = direct ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  if (!direct) listed_ = list_partial(partial_path_.c_str());
  fd_ = ::open(partial_path_.c_str(), flags, 0666);
  if (fd_ >= 0) return;
  const int reason = errno;
  unlist();
  errno = reason;
  fail(direct ? "cannot be opened" : "cannot be created");
}

void OutputFile::unlist() {
  if (listed_ < 0) return;
  const auto at = static_cast<size_t>(std::exchange(listed_, -1));
  if (partial_names[at].exchange(nullptr) == nullptr) wait_for_the_end();  // a handler has taken it
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!is_direct()) ::unlink(partial_path_.c_str());
  unlist();
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
    unlist();
  }
  ::close(std::exchange(fd_, -1));
}

}  // namespace sluice
