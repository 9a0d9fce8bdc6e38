// See partial_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::hub {
namespace {

namespace fs = std::filesystem;

// A killed program fetches no more than this again, for each connection's last bytes aside.
constexpr uint64_t kRecordEvery = 2 * kMiB;

std::string errno_text() { return std::generic_category().message(errno); }

[[noreturn]] void fail(const std::string& path, const std::string& text) {
  throw Error(Errc::bad_file, cat(path, ": ", text));
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return in ? std::string(std::istreambuf_iterator<char>(in), {}) : "";
}

// Which start of the machine this is; empty: not known.
std::string boot_id() {
  std::string id = read_text("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() <= ' ') id.pop_back();
  return id.find(' ') == std::string::npos ? id : "";
}

// What was written about this very file. One whose hash is not known is fetched anew.
std::optional<ResumeRecord> record_of(const std::string& record_path,
                                      const FileIdentity& identity) {
  auto record = ResumeRecord::parse(read_text(record_path));
  const bool is_same = record && record->n_bytes == identity.n_bytes &&
                       record->sha256 == identity.sha256 && !identity.sha256.empty();
  return is_same ? record : std::nullopt;
}

void sync_folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return UINT64_MAX;  // writing will tell
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace

std::string partial_path_of(const std::string& path) { return path + ".partial"; }
std::string record_path_of(const std::string& path) { return path + ".resume"; }

void require_room(const std::string& folder, uint64_t n_bytes) {
  fs::path there = folder;
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  const uint64_t n_free = free_bytes(there.empty() ? "." : there.string());
  if (n_bytes <= n_free) return;
  fail(folder, cat("the disk has ", format_bytes(n_free), " free; expected ", format_bytes(n_bytes),
                   ", which are still to be fetched: make room, or name a folder on another disk "
                   "in SLUICE_MODELS"));
}

uint64_t bytes_kept(const std::string& path, const FileIdentity& identity) {
  const auto record = record_of(record_path_of(path), identity);
  return record ? record->reliable(boot_id()).n_bytes() : 0;
}

PartialFile::PartialFile(std::string path, FileIdentity identity)
    : path_(std::move(path)),
      partial_path_(partial_path_of(path_)),
      record_path_(record_path_of(path_)),
      identity_(std::move(identity)),
      boot_(boot_id()) {
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  fd_ = ::open(partial_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    fail(partial_path_, cat("cannot be created (", errno_text(), "); expected a writable folder"));
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(std::exchange(fd_, -1));
    fail(partial_path_, "another sluice is fetching this file; wait for it, or end it");
  }
  take_up();
}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
}

void PartialFile::take_up() {
  const auto before = record_of(record_path_, identity_);
  record_ = {.n_bytes = identity_.n_bytes, .sha256 = identity_.sha256, .boot = boot_};
  if (before) {
    record_.landed = before->reliable(boot_);
    record_.n_synced = before->n_synced;
    const off_t end = ::lseek(fd_, 0, SEEK_END);
    record_.landed.cut(end < 0 ? 0 : static_cast<uint64_t>(end));  // somebody may have cut it
  } else if (::ftruncate(fd_, 0) != 0) {
    fail(partial_path_, cat("cannot be emptied (", errno_text(), ")"));
  }
  save_record();
}

void PartialFile::write(uint64_t at, std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0 && at + bytes.size() <= identity_.n_bytes);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::string reason = errno_text();
      const uint64_t n_left = identity_.n_bytes - record_.landed.n_bytes();
      const std::string folder = fs::path(path_).parent_path().string();
      fail(partial_path_, cat("cannot be written (", reason, "): ", format_bytes(n_left),
                              " are still to come, ", format_bytes(free_bytes(folder)),
                              " are free; what is here is kept: make room and run it again"));
    }
    const auto n_written = static_cast<uint64_t>(n);
    record_.landed.add({at, at + n_written});
    n_unrecorded_ += n_written;
    at += n_written;
    bytes = bytes.subspan(n_written);
  }
  if (n_unrecorded_ >= kRecordEvery) save_record();
}

// The older record stays where there is no room for a new one.
void PartialFile::save_record() noexcept {
  try {
    const std::string temporary = record_path_ + ".new";
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out << record_.to_text();
    out.close();
    if (!out || std::rename(temporary.c_str(), record_path_.c_str()) != 0) {
      ::unlink(temporary.c_str());
      return;
    }
    n_unrecorded_ = 0;
  } catch (const std::exception&) {  // out of memory
  }
}

void PartialFile::keep() noexcept {
  if (fd_ < 0) return;
  if (::fdatasync(fd_) == 0) record_.boot.clear();
  save_record();
  record_.boot = boot_;
}

void PartialFile::commit() {
  CHECK(fd_ >= 0 && record_.landed.first_gap() == identity_.n_bytes);
  if (::fsync(fd_) != 0) {
    fail(partial_path_, cat("cannot be saved to disk (", errno_text(), "); check the disk"));
  }
  if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    fail(path_,
         cat("cannot be named so (", errno_text(), "); the file is whole at ", partial_path_));
  }
  ::unlink(record_path_.c_str());
  sync_folder_of(path_);
  ::close(std::exchange(fd_, -1));
}

void PartialFile::discard() {
  ::unlink(record_path_.c_str());
  ::unlink(partial_path_.c_str());
  ::close(std::exchange(fd_, -1));
}

}  // namespace sluice::hub
