// See state_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/state_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/units.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_read(const std::string& reason) {
  throw Error(Errc::bad_file, cat("cannot be read (", reason, ")"));
}

std::vector<std::byte> read_whole(const std::string& path, uint64_t max_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) fail_to_read(std::generic_category().message(errno));
  std::vector<std::byte> bytes;
  std::array<std::byte, 64 * kKiB> piece;
  while (const size_t n = std::fread(piece.data(), 1, piece.size(), file.get())) {
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + n);
    if (bytes.size() > max_bytes) {
      throw Error(Errc::bad_file, cat("is larger than ", format_bytes(max_bytes)));
    }
  }
  if (std::ferror(file.get())) fail_to_read(std::generic_category().message(errno));
  return bytes;
}

void make_folder(const fs::path& folder) {
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  make_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw Error(Errc::bad_file,
                cat(folder.string(), ": cannot be made (", std::generic_category().message(errno),
                    "); expected a place where folders can be made"));
  }
}

// Keeps other writers of a folder out, who would use the same name for their partial file. Where
// the system has no such locks, the writers race, and one of them may fail.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : fd_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0) ::flock(fd_, LOCK_EX);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  int fd_;
};

}  // namespace

void read_state_file(const std::string& path, uint64_t max_bytes,
                     const std::function<void(std::span<const std::byte>)>& parse,
                     std::string* warning) {
  try {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) return;
    if (status.type() == fs::file_type::none) fail_to_read(error.message());
    if (!fs::is_regular_file(status)) throw Error(Errc::bad_file, "is not a file");
    parse(read_whole(path, max_bytes));
  } catch (const Error& error) {
    *warning = cat(path, ": ", error.what(), "; starting without it");
  }
}

void write_state_file(const std::string& path, std::span<const std::byte> bytes) {
  CHECK(!path.empty());
  const fs::path folder = fs::path(path).parent_path();
  make_folder(folder);
  const FolderLock lock(folder);
  OutputFile file(path);
  file.append(bytes);
  file.commit();
}

}  // namespace sluice::engine
