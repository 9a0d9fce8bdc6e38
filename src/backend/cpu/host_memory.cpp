// See host_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/host_memory.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <new>

#include "base/cpu_topology.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::backend {
namespace {

constexpr std::align_val_t kAlignment{64};
// What is as large as a huge page lies in such: it takes a KV cache of 4096 positions from 6.6 to
// 8.1 GB/s (docs/decisions/0007).
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr std::align_val_t kHugeAlignment{kHugePage};
// No machine has more. (The aligned operator new of GCC 12 rounds sizes near 2^64 up to 0.)
constexpr uint64_t kMostBytes = uint64_t{1} << 62;

// The memory nodes of the CPUs that we may use, as bits.
uint64_t nodes_in_use() {
  uint64_t nodes = 0;
  for (const LogicalCpu& cpu : this_machines_cpus().cpus) {
    if (cpu.node < 64) nodes |= uint64_t{1} << cpu.node;
  }
  return nodes;
}

// Page by page round the nodes. Refused is fine: then pages lie where they are first touched.
void spread_over_nodes(std::byte* data, uint64_t n_bytes) {
  static const uint64_t nodes = nodes_in_use();
  if (std::popcount(nodes) < 2) return;
  constexpr unsigned long kMaskBits = 65;  // the kernel takes one less
  ::syscall(SYS_mbind, data, n_bytes, MPOL_INTERLEAVE, &nodes, kMaskBits, 0);
}

}  // namespace

Buffer allocate_host(uint64_t n_bytes) {
  const bool huge = n_bytes >= kHugePage;
  std::byte* data = nullptr;
  if (n_bytes <= kMostBytes) {
    data = static_cast<std::byte*>(
        ::operator new(n_bytes, huge ? kHugeAlignment : kAlignment, std::nothrow));
  }
  if (!data) {
    throw Error(Errc::out_of_memory,
                cat("cannot allocate ", format_bytes(n_bytes),
                    " of memory; ask for a smaller context (-c) or a smaller KV type"));
  }
  if (!huge) return {data, n_bytes, [](std::byte* p) { ::operator delete(p, kAlignment); }};
  madvise(data, n_bytes, MADV_HUGEPAGE);  // refused is fine: then with small pages
  spread_over_nodes(data, n_bytes);
  return {data, n_bytes, [](std::byte* p) { ::operator delete(p, kHugeAlignment); }};
}

}  // namespace sluice::backend
