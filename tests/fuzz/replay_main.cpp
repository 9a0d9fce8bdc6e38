// Runs a fuzz entry once over every file of a folder, without libFuzzer: what was found once is
// tested by every build. A finding ends the process; otherwise the number of files is printed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  // A block of exactly this size, so that ASan sees a read beyond the end.
  const auto block = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), block.get());
  LLVMFuzzerTestOneInput(block.get(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s <folder with inputs>\n", argv[0]);
    return 2;
  }
  size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (!entry.is_regular_file()) continue;
    std::printf("%s\n", entry.path().filename().c_str());  // the last one names a finding
    std::fflush(stdout);
    replay(entry.path());
    ++n_files;
  }
  std::printf("%zu files replayed\n", n_files);
  return n_files > 0 ? 0 : 1;
}
