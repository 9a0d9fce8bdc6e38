// A whole file, mapped read-only: the bytes cost no memory until they are touched, and the kernel
// may drop them again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sluice::gguf {

// Move-only; the bytes stay where they are when it moves. The file must not shrink while it is
// mapped: touching what is gone ends the process (SIGBUS), as with every mapped file.
class MappedFile {
 public:
  // Throws Errc::bad_file for a path that is missing, unreadable, empty or not a regular file.
  static MappedFile open(const std::string& path);

  // A file of which the first bytes alone are here: memory of the file's size, which begins with
  // them and reads as zeros behind. For what looks at a model's directory and at no weight.
  static MappedFile of_header(const std::string& path, std::span<const std::byte> header,
                              uint64_t file_bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  // Reads all of the file into the page cache and maps it, piece by piece. `progress` (may be
  // empty) hears after each piece how many bytes are done, and may throw to stop.
  void populate(const std::function<void(uint64_t bytes_done)>& progress) const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;  // empty after a move
};

// Of bytes within a mapped file: reads them from the disk if they are not in memory, and returns 0
// or the errno of what went wrong; gives the memory back that our mapping of them holds (they may
// stay in the page cache, and come again when they are touched).
int read_pages(std::span<const std::byte> bytes);
void forget_pages(std::span<const std::byte> bytes);

}  // namespace sluice::gguf
