// A file that appears under its name only when it is whole: written as <path>.partial, renamed by
// commit(), removed when that never comes. What cannot be replaced so (a device, a pipe) is written
// to directly. A program that is ended by a signal calls remove_partial_files() in its handler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice {

// Neither copied nor moved. A link stays, and what it points to is replaced. Errors (a full disk,
// no permission) throw Errc::bad_file with the system's reason; the partial file goes with the
// object.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  const std::string& path() const { return path_; }
  uint64_t bytes_written() const { return bytes_written_; }

  // Small pieces are gathered; large ones go to the system as they are, without a copy.
  void append(std::span<const std::byte> bytes);
  void append_zeros(uint64_t n);

  // Waits until the disk has everything, then gives the file its name, replacing an older one.
  void commit();

 private:
  void unlist();
  void flush();
  void write_out(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* what) const;

  bool is_direct() const { return partial_path_ == path_; }

  std::string path_;
  std::string partial_path_;  // where bytes go until commit()
  std::vector<std::byte> buffer_;
  uint64_t bytes_written_ = 0;  // the buffer's included
  int fd_ = -1;                 // -1 after commit()
  int listed_ = -1;             // where remove_partial_files() finds it; -1: nowhere
};

// Removes the partial files of all open OutputFiles. For the handler of a signal that ends the
// process, and safe to call in one. The process must end after it: a thread that then creates,
// commits or destroys an OutputFile waits for that.
void remove_partial_files() noexcept;

}  // namespace sluice
