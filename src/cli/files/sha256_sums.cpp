// See sha256_sums.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/sha256_sums.h"

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/output_file.h"
#include "base/units.h"
#include "hub/sha256.h"

namespace sluice::cli {
namespace {

constexpr size_t kHexDigits = 64;

}  // namespace

Sha256Sums::Sha256Sums(std::string path) : path_(std::move(path)) {
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {  // "<64 digits>  <name>"
    if (line.size() < kHexDigits + 3 || line[kHexDigits] != ' ') continue;
    by_file_[line.substr(kHexDigits + 2)] = line.substr(0, kHexDigits);
  }
}

std::optional<std::string> Sha256Sums::find(const std::string& file) const {
  const auto found = by_file_.find(file);
  if (found == by_file_.end()) return std::nullopt;
  return found->second;
}

void Sha256Sums::set(const std::string& file, const std::string& hex) {
  by_file_[file] = hex;
  save();
}

void Sha256Sums::forget(const std::string& file) {
  if (by_file_.erase(file) > 0) save();
}

void Sha256Sums::save() const {
  try {
    if (by_file_.empty()) {
      std::error_code ignored;
      std::filesystem::remove(path_, ignored);
      return;
    }
    std::string text;
    for (const auto& [file, hex] : by_file_) text += cat(hex, "  ", file, "\n");
    OutputFile out(path_);
    out.append(std::as_bytes(std::span(text)));
    out.commit();
  } catch (const Error&) {  // a folder that cannot be written to, a full disk
  }
}

std::string sha256_of(const std::string& path,
                      const std::function<void(uint64_t done, uint64_t total)>& progress) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  const uint64_t total = std::filesystem::file_size(path, error);
  hub::Sha256 hash;
  std::vector<char> buffer(kMiB);
  uint64_t done = 0;
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto n = static_cast<size_t>(in.gcount());
    hash.add(std::as_bytes(std::span(buffer).first(n)));
    done += n;
    if (progress) progress(done, total);
  }
  if (error || done != total) {
    throw Error(Errc::bad_file,
                cat(path, ": cannot be read to its end; expected a readable file on a sound disk"));
  }
  return hash.hex();
}

}  // namespace sluice::cli
