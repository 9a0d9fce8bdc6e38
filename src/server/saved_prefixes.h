// The folder of saved prefixes: which names there are, and which file each of them is. Reads and
// writes none of them: that is the engine's work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::server {

class SavedPrefixes {
 public:
  // Empty: there is none, and every call throws ApiError (501). Throws Error (bad_request) where it
  // is no folder.
  explicit SavedPrefixes(std::string folder);

  // The file of a name, which need not exist. Throws ApiError (400) for a name that could lead
  // elsewhere or is none: expected are 1 to 64 letters, digits, '.', '_' and '-', of which the
  // first is no '.'.
  std::string path_of(const std::string& name) const;
  // As path_of(); throws ApiError (404) where there is no such file.
  std::string existing_path_of(const std::string& name) const;

  struct Saved {
    std::string name;
    uint64_t n_bytes = 0;
  };
  std::vector<Saved> list() const;  // by name
  // Throws ApiError: 404 where there is no such file, 500 where it stays.
  void erase(const std::string& name) const;

 private:
  void require_folder() const;

  std::string folder_;
};

}  // namespace sluice::server
