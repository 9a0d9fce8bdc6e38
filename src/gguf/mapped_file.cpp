// See mapped_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace sluice::gguf {
namespace {

#ifdef MADV_POPULATE_READ
constexpr int kPopulateRead = MADV_POPULATE_READ;
#else
constexpr int kPopulateRead = 22;  // Linux 5.14; an older kernel answers EINVAL
#endif

[[noreturn]] void fail(const std::string& path, std::string_view found,
                       std::string_view expected = "a GGUF file") {
  throw Error(Errc::bad_file, cat(path, ": ", found, "; expected ", expected));
}

std::string errno_text() { return std::generic_category().message(errno); }

// The mapping outlives the descriptor, so the descriptor lives in open() alone.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void touch_each_page(std::span<const std::byte> bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < bytes.size(); i += page) {
    static_cast<void>(*static_cast<const volatile std::byte*>(&bytes[i]));
  }
}

}  // namespace

MappedFile MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a pipe would make open() wait for a writer; of a file it changes nothing.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0 && errno == ENOENT) fail(path, "there is no such file");
  if (file.fd < 0) fail(path, cat("cannot be opened (", errno_text(), ")"), "a readable GGUF file");

  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail(path, cat("cannot be examined (", errno_text(), ")"));
  if (S_ISDIR(info.st_mode)) fail(path, "is a directory");
  if (!S_ISREG(info.st_mode)) fail(path, "is not a regular file");
  if (info.st_size == 0) fail(path, "is empty", "a GGUF file (an interrupted download?)");

  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) {
    fail(path, cat("cannot be mapped (", errno_text(), ")"),
         cat(format_bytes(size), " of address space"));
  }
  return MappedFile(path, {static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::populate(const std::function<void(uint64_t bytes_done)>& progress) const {
  constexpr size_t kPiece = 32 * kMiB;
  bool advise = true;
  for (size_t done = 0; done < bytes_.size();) {
    const auto piece = bytes_.subspan(done, std::min(kPiece, bytes_.size() - done));
    auto* start = const_cast<std::byte*>(piece.data());  // madvise() takes no const
    if (advise && ::madvise(start, piece.size(), kPopulateRead) != 0) {
      if (errno != EINVAL) {
        fail(path_, cat("cannot be read at byte ", done, " (", errno_text(), ")"),
             "a whole file on a sound disk");
      }
      advise = false;
    }
    if (!advise) touch_each_page(piece);
    done += piece.size();
    if (progress) progress(done);
  }
}

}  // namespace sluice::gguf
