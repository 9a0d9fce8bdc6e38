// The hashes of a folder's files, in the format of sha256sum, which can check it: SHA256SUMS.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace sluice::cli {

class Sha256Sums {
 public:
  // Reads the file; one that is not there is empty.
  explicit Sha256Sums(std::string path);

  std::optional<std::string> find(const std::string& file) const;
  // Both write the file anew; where that fails the hashes are found again when they are needed.
  void set(const std::string& file, const std::string& hex);
  void forget(const std::string& file);
  bool is_empty() const { return by_file_.empty(); }

 private:
  void save() const;

  std::string path_;
  std::map<std::string, std::string> by_file_;
};

// Of a file on the disk. Throws Errc::bad_file.
std::string sha256_of(const std::string& path,
                      const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace sluice::cli
