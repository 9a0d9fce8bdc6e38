// See mapped_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

MappedFile MappedFile::of_header(const std::string& path, std::span<const std::byte> header,
                                 uint64_t file_bytes) {
  if (header.empty() || header.size() > file_bytes) fail(path, "is empty");
  // Not writable as a whole: that would count as memory in use where the kernel promises no more
  // than there is.
  void* address = ::mmap(nullptr, file_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    fail(path, cat("cannot be mapped (", errno_text(), ")"),
         cat(format_bytes(file_bytes), " of address space"));
  }
  MappedFile file(path, {static_cast<const std::byte*>(address), file_bytes});
  if (::mprotect(address, header.size(), PROT_READ | PROT_WRITE) != 0) {
    fail(path, cat("memory for its header cannot be had (", errno_text(), ")"),
         format_bytes(header.size()));
  }
  std::memcpy(address, header.data(), header.size());
  ::mprotect(address, header.size(), PROT_READ);
  return file;
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

namespace {

// The bytes' pages, whole ones only or all that they touch: madvise() takes nothing else.
std::span<std::byte> pages_of(std::span<const std::byte> bytes, bool whole) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGE_SIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t end = begin + bytes.size();
  const uintptr_t first = (whole ? begin + page - 1 : begin) / page * page;
  const uintptr_t last = (whole ? end : end + page - 1) / page * page;
  if (last <= first) return {};
  return {reinterpret_cast<std::byte*>(first), last - first};
}

}  // namespace

int read_pages(std::span<const std::byte> bytes) {
  const std::span pages = pages_of(bytes, /*whole=*/false);
  if (pages.empty() || ::madvise(pages.data(), pages.size(), kPopulateRead) == 0) return 0;
  if (errno != EINVAL) return errno;
  touch_each_page(bytes);  // a kernel before 5.14
  return 0;
}

void forget_pages(std::span<const std::byte> bytes) {
  const std::span pages = pages_of(bytes, /*whole=*/true);
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

void MappedFile::populate(const std::function<void(uint64_t bytes_done)>& progress) const {
  constexpr size_t kPiece = 32 * kMiB;
  for (size_t done = 0; done < bytes_.size();) {
    const auto piece = bytes_.subspan(done, std::min(kPiece, bytes_.size() - done));
    if (const int error = read_pages(piece)) {
      errno = error;
      fail(path_, cat("cannot be read at byte ", done, " (", errno_text(), ")"),
           "a whole file on a sound disk");
    }
    done += piece.size();
    if (progress) progress(done);
  }
}

}  // namespace sluice::gguf
