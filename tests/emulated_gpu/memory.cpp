// See memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/memory.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace sluice::emulated_gpu {
namespace {

struct Region {
  uint64_t end;
  MemoryOf what;
};

std::string cat_place(uint64_t offset, uint64_t n_bytes) {
  return "byte " + std::to_string(offset) + " of a block of " + std::to_string(n_bytes);
}

std::shared_mutex mutex;
std::map<uint64_t, Region>& regions() {
  static auto* const all = new std::map<uint64_t, Region>;  // outlives what is torn down at exit
  return *all;
}
std::atomic<uint64_t> generation{1};
uint64_t used = 0;

const Region* region_with(uint64_t address, uint64_t* first) {
  auto next = regions().upper_bound(address);
  if (next == regions().begin()) return nullptr;
  --next;
  if (address >= next->second.end) return nullptr;
  *first = next->first;
  return &next->second;
}

// The host's memory is pinned by whole pages, so kernels that read whole lines may begin in front
// of what was registered, and go on behind it.
bool is_on_host_pages(uint64_t address) {
  const uint64_t page = address & ~uint64_t{4095};
  auto next = regions().lower_bound(page + 4096);
  if (next == regions().begin()) return false;
  --next;  // the last one that begins in this page or before it
  return next->second.what == MemoryOf::host && next->second.end > page;
}

}  // namespace

void add_region(const void* first, size_t n_bytes, MemoryOf what) {
  const std::unique_lock lock(mutex);
  const auto at = reinterpret_cast<uint64_t>(first);
  regions()[at] = {at + n_bytes, what};
  if (std::getenv("EMULATED_TRACE")) {
    std::fprintf(stderr, "memory %d: %#lx to %#lx\n", static_cast<int>(what), at, at + n_bytes);
  }
  if (what == MemoryOf::device) used += n_bytes;
  ++generation;
}

bool remove_region(const void* first) {
  const std::unique_lock lock(mutex);
  const auto found = regions().find(reinterpret_cast<uint64_t>(first));
  if (found == regions().end()) return false;
  if (std::getenv("EMULATED_TRACE")) std::fprintf(stderr, "memory gone: %#lx\n", found->first);
  if (found->second.what == MemoryOf::device) used -= found->second.end - found->first;
  regions().erase(found);
  ++generation;
  return true;
}

// The last region that this thread has found is tried first.
bool is_known(uint64_t address, size_t n_bytes) {
  struct Last {
    uint64_t first = 1, end = 0, generation = 0;
  };
  thread_local Last last[2];
  const uint64_t now = generation.load(std::memory_order_acquire);
  for (Last& l : last) {
    if (l.generation == now && address >= l.first && address + n_bytes <= l.end) return true;
  }
  const std::shared_lock lock(mutex);
  uint64_t first = 0;
  const Region* const r = region_with(address, &first);
  if (!r || address + n_bytes > r->end) {
    return is_on_host_pages(address) && is_on_host_pages(address + n_bytes - 1);
  }
  last[1] = last[0];
  last[0] = {first, r->end, now};
  return true;
}

bool is_device_memory(const void* address) {
  const std::shared_lock lock(mutex);
  uint64_t first = 0;
  const Region* const r = region_with(reinterpret_cast<uint64_t>(address), &first);
  return r && r->what == MemoryOf::device;
}

std::string place_of(uint64_t address) {
  const std::shared_lock lock(mutex);
  auto next = regions().upper_bound(address);
  if (next == regions().begin()) return "before all that was allocated";
  --next;
  return cat_place(address - next->first, next->second.end - next->first) + " (" +
         std::to_string(address) + ")";
}

size_t region_bytes(const void* first) {
  const std::shared_lock lock(mutex);
  const auto found = regions().find(reinterpret_cast<uint64_t>(first));
  return found == regions().end() ? 0 : found->second.end - found->first;
}

uint64_t device_bytes_used() {
  const std::shared_lock lock(mutex);
  return used;
}

}  // namespace sluice::emulated_gpu
