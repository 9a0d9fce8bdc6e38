// A file on its way: written as <path>.partial in any order, with a record of what has landed
// beside it (<path>.resume), and renamed when all of it is here and checked. It outlives the
// program: unlike base/output_file.h, what is not whole yet is kept, to be gone on with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "hub/resume_record.h"

namespace sluice::hub {

struct FileIdentity {
  uint64_t n_bytes = 0;
  std::string sha256;  // empty: not known
};

class PartialFile {
 public:
  // Opens what an earlier attempt has left of the same file, or begins a new one. Makes the
  // folders. Throws Errc::bad_file, also where another process is fetching this file.
  PartialFile(std::string path, FileIdentity identity);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  int descriptor() const { return fd_; }
  const RangeSet& landed() const { return record_.landed; }

  // Throws Errc::bad_file where the disk is full.
  void write(uint64_t at, std::span<const std::byte> bytes);
  // So many bytes from the beginning are on the disk.
  void note_synced(uint64_t n_bytes) { record_.n_synced = std::max(record_.n_synced, n_bytes); }

  // Brings all to the disk and says so in the record. For the end of an attempt; says nothing
  // where that fails.
  void keep() noexcept;
  // Gives the file its name. All of it must have landed.
  void commit();
  // Removes it: what is in it is wrong.
  void discard();

 private:
  void take_up();
  void save_record() noexcept;

  std::string path_;
  std::string partial_path_;
  std::string record_path_;
  FileIdentity identity_;
  ResumeRecord record_;
  std::string boot_;
  uint64_t n_unrecorded_ = 0;
  int fd_ = -1;
};

// The names that go with a file on its way.
std::string partial_path_of(const std::string& path);
std::string record_path_of(const std::string& path);

// How many bytes of a file an earlier attempt has left.
uint64_t bytes_kept(const std::string& path, const FileIdentity& identity);

// Throws Errc::bad_file where the file system of `folder` (or of its nearest parent that is there)
// has less room than that.
void require_room(const std::string& folder, uint64_t n_bytes);

}  // namespace sluice::hub
