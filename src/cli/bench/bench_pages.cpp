// See bench_pages.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/error.h"
#include "gguf/mapped_file.h"

namespace sluice::cli {

double cached_share(const std::vector<std::string>& paths) {
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t n_pages = 0;
  int64_t n_cached = 0;
  for (const std::string& path : paths) {
    const gguf::MappedFile file = gguf::MappedFile::open(path);
    std::vector<unsigned char> states((file.bytes().size() + page_bytes - 1) / page_bytes);
    auto* const start = const_cast<std::byte*>(file.bytes().data());  // mincore() takes no const
    if (::mincore(start, file.bytes().size(), states.data()) != 0) {
      throw Error(Errc::bad_file,
                  cat(path, ": the kernel does not tell which pages are in memory (",
                      std::generic_category().message(errno), "); expected an ordinary file"));
    }
    n_pages += states.size();
    n_cached += std::ranges::count_if(states, [](unsigned char state) { return state & 1; });
  }
  return static_cast<double>(n_cached) / static_cast<double>(n_pages);
}

void drop_from_cache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;  // whoever loads it says why
    ::fdatasync(file);       // pages not yet on the disk cannot be dropped
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

}  // namespace sluice::cli
