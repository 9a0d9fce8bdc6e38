// Copies to shared memory that go on by themselves, the barriers that count their bytes, clusters,
// and the order of kernels. See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "emulated_gpu/handlers.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/values.h"

namespace sluice::emulated_gpu {
namespace {

using Name = std::vector<std::string_view>;

constexpr uint64_t kInBlock = (1u << kRankShift) - 1;

// cp.async.cg.shared.global [to], [from], n: arrives when it is waited for.
void copy(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<uint32_t> to(w, w.operand(i, 0)), n(w, w.operand(i, 2));
  const Lanes<uint64_t> from(w, w.operand(i, 1));
  const Operand& read = w.operand(i, 3);
  each(lanes, [&](int l) {
    const int n_bytes = static_cast<int>(n[l]);
    const int n_read =
        read.bank == Bank::none ? n_bytes : static_cast<int>(Lanes<uint32_t>(w, read)[l]);
    if (from[l] % static_cast<unsigned>(n_bytes) != 0) fault(w, i, "the source is not aligned");
    if (n_read > 0 && !is_known(from[l], static_cast<size_t>(n_read))) {
      fault(w, i, "lane " + std::to_string(l) + ": no memory was allocated at the source");
    }
    std::byte* const place = w.block.shared(w, i, to[l], static_cast<size_t>(n_bytes));
    w.copies.push_back({l, w.groups[l], n_bytes, n_read,
                        static_cast<uint32_t>(place - w.block.memory.data()),
                        reinterpret_cast<const std::byte*>(from[l])});
  });
}

void end_group(Warp& w, const Instruction&, Mask lanes) {
  each(lanes, [&](int l) { ++w.groups[l]; });
}

void wait_group(Warp& w, const Instruction& i, Mask lanes) {
  w.finish_copies(lanes, static_cast<int>(Lanes<uint32_t>(w, w.operand(i, 0))[0]));
}

void wait_all(Warp& w, const Instruction&, Mask lanes) {
  each(lanes, [&](int l) { ++w.groups[l]; });
  w.finish_copies(lanes, 0);
}

MBarrier& barrier_at(Warp& w, const Instruction& i, uint32_t address) {
  Block& b = w.block.at_address(address);
  const auto found = b.mbarriers.find(static_cast<uint32_t>(address & kInBlock));
  if (found == b.mbarriers.end()) fault(w, i, "no mbarrier was made there");
  return found->second;
}

void make_barrier(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<uint32_t> at(w, w.operand(i, 0)), n(w, w.operand(i, 1));
  each(lanes, [&](int l) {
    w.block.shared(w, i, at[l], 8);
    const int count = static_cast<int>(n[l]);
    w.block.mbarriers[at[l]] = {count, count, 0, 0};
  });
}

// mbarrier.arrive(.expect_tx) _, [at](, n)
template <bool expects>
void arrive(Warp& w, const Instruction& i, Mask lanes) {
  each(lanes, [&](int l) {
    const uint32_t at = Lanes<uint32_t>(w, w.operand(i, 1))[l] + static_cast<uint32_t>(i.offset);
    MBarrier& b = barrier_at(w, i, at);
    if (expects) b.bytes += Lanes<int32_t>(w, w.operand(i, 2))[l];
    if (b.pending == 0) fault(w, i, "more threads arrive than the mbarrier expects");
    --b.pending;
    b.settle();
  });
}

// cp.async.mbarrier.arrive.noinc: when this thread's copies have arrived.
void arrive_after_copies(Warp& w, const Instruction& i, Mask lanes) {
  each(lanes, [&](int l) { ++w.groups[l]; });
  w.finish_copies(lanes, 0);
  each(lanes, [&](int l) {
    MBarrier& b = barrier_at(w, i, Lanes<uint32_t>(w, w.operand(i, 0))[l]);
    --b.pending;
    b.settle();
  });
}

// p, [at], parity
void look(Warp& w, const Instruction& i, Mask lanes) {
  const Operand &to = w.operand(i, 0), &address = w.operand(i, 1), &parity = w.operand(i, 2);
  Mask done = 0;
  each(lanes, [&](int l) {
    const uint32_t at = Lanes<uint32_t>(w, address)[l] + static_cast<uint32_t>(i.offset);
    MBarrier& b = barrier_at(w, i, at);
    if ((b.phase & 1) == (Lanes<uint32_t>(w, parity)[l] & 1)) {
      w.block.at_address(at).deliver(static_cast<uint32_t>(at & kInBlock));
    }
    if ((b.phase & 1) != (Lanes<uint32_t>(w, parity)[l] & 1)) done |= 1u << l;
  });
  put_predicate(w, to, lanes, done);
  if ((done & lanes) != lanes) w.yield(false);
}

// cp.async.bulk: [to], [from], n, [barrier]
void copy_many(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<uint32_t> to(w, w.operand(i, 0)), n(w, w.operand(i, 2)), barrier(w, w.operand(i, 3));
  const Lanes<uint64_t> from(w, w.operand(i, 1));
  each(lanes, [&](int l) {
    if (n[l] % 16 != 0 || to[l] % 16 != 0 || from[l] % 16 != 0)
      fault(w, i, "not in units of 16 bytes");
    if (!is_known(from[l], n[l]))
      fault(w, i, std::to_string(n[l]) + " bytes at " + place_of(from[l]));
    if ((to[l] & kInBlock) + n[l] > w.block.memory.size())
      fault(w, i, "past the end of shared memory");
    barrier_at(w, i, barrier[l]);
    w.block.at_address(to[l]).deliveries.push_back({static_cast<uint32_t>(barrier[l] & kInBlock),
                                                    static_cast<uint32_t>(to[l] & kInBlock),
                                                    {},
                                                    reinterpret_cast<const std::byte*>(from[l]),
                                                    n[l]});
  });
}

// st.async: [to], values, [barrier]
void send(Warp& w, const Instruction& i, Mask lanes) {
  const int n = static_cast<int>(i.n_values);
  each(lanes, [&](int l) {
    const uint32_t to = Lanes<uint32_t>(w, w.operand(i, 0))[l];
    const uint32_t barrier = Lanes<uint32_t>(w, w.operand(i, n + 1))[l];
    barrier_at(w, i, barrier);
    w.block.shared(w, i, to, static_cast<size_t>(4 * n));
    std::vector<std::byte> bytes(static_cast<size_t>(4 * n));
    for (int k = 0; k < n; ++k) {
      const uint32_t word = Lanes<uint32_t>(w, w.operand(i, 1 + k))[l];
      std::memcpy(bytes.data() + 4 * k, &word, 4);
    }
    const size_t n_bytes = bytes.size();
    w.block.at_address(to).deliveries.push_back({static_cast<uint32_t>(barrier & kInBlock),
                                                 static_cast<uint32_t>(to & kInBlock),
                                                 std::move(bytes), nullptr, n_bytes});
  });
}

void map_to_rank(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<uint32_t> a(w, w.operand(i, 1)), rank(w, w.operand(i, 2));
  each(lanes, [&](int l) {
    if (rank[l] >= w.block.cluster->blocks.size()) fault(w, i, "no block of that rank");
    put(w, w.operand(i, 0), l,
        static_cast<uint32_t>(a[l] & kInBlock) | (rank[l] + 1) << kRankShift);
  });
}

int living(const Cluster& c) {
  int n = 0;
  for (const Block* b : c.blocks) n += b->n_alive();
  return n;
}

void arrive_in_cluster(Warp& w, const Instruction&, Mask lanes) {
  Cluster& c = *w.block.cluster;
  w.cluster_phase = c.phase;
  c.arrived += __builtin_popcount(lanes);
  if (c.arrived >= living(c)) {
    c.arrived = 0;
    ++c.phase;
  }
}

void wait_for_cluster(Warp& w, const Instruction&, Mask) {
  Cluster& c = *w.block.cluster;
  if (w.cluster_phase == c.phase && c.arrived > 0 && c.arrived >= living(c)) {
    c.arrived = 0;
    ++c.phase;
  }
  if (w.cluster_phase == c.phase) w.yield(true);
}

void wait_for_previous(Warp& w, const Instruction&, Mask) {
  if (!w.block.grid.previous_is_done) w.waits_for_previous = true;
}

void let_next_begin(Warp& w, const Instruction&, Mask) {
  if (w.block.lets_go) return;
  w.block.lets_go = w.block.pauses = true;
  w.yield(false);
}

void fence(Warp&, const Instruction&, Mask) { std::atomic_thread_fence(std::memory_order_seq_cst); }

void nap(Warp& w, const Instruction&, Mask) { w.yield(false); }

}  // namespace

Handler copy_handler(const Name& name, Instruction& i) {
  const std::string_view op = name[0];
  const auto has = [&](std::string_view part) {
    return std::find(name.begin(), name.end(), part) != name.end();
  };
  if (op == "cp") {
    if (has("bulk")) return has("mbarrier::complete_tx::bytes") ? copy_many : nullptr;
    if (has("commit_group")) return end_group;
    if (has("wait_group")) return wait_group;
    if (has("wait_all")) return wait_all;
    if (has("mbarrier")) return arrive_after_copies;
    return copy;
  }
  if (op == "mbarrier") {
    if (name[1] == "init") return make_barrier;
    if (name[1] == "arrive") return has("expect_tx") ? arrive<true> : arrive<false>;
    if (name[1] == "try_wait" || name[1] == "test_wait") return has("parity") ? look : nullptr;
    return nullptr;
  }
  if (op == "st" && name[1] == "async") {
    i.n_values = has("v4") ? 4 : has("v2") ? 2 : 1;
    return send;
  }
  if (op == "mapa") return map_to_rank;
  if (op == "barrier" && name[1] == "cluster")
    return name[2] == "arrive" ? arrive_in_cluster : wait_for_cluster;
  if (op == "griddepcontrol") return name[1] == "wait" ? wait_for_previous : let_next_begin;
  if (op == "membar" || op == "fence") return fence;
  if (op == "nanosleep") return nap;
  return nullptr;
}

}  // namespace sluice::emulated_gpu
