// Blocks and grids: see warp.h. Blocks take turns, so that those that wait for each other get on.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <stdexcept>
#include <utility>

#include "emulated_gpu/warp.h"

namespace sluice::emulated_gpu {
namespace {

constexpr int kTurns = 64;  // of a block's warps, before the next block has its own

}  // namespace

Block::Block(Grid& of, Dim at_, unsigned rank_, Cluster* cluster_)
    : grid(of), at(at_), rank(rank_), cluster(cluster_) {
  const LaunchOf& launch = grid.launch;
  memory.resize(static_cast<size_t>(launch.kernel->shared_bytes) + launch.dynamic_bytes,
                std::byte{0xff});
  const int n_warps = static_cast<int>((launch.block.count() + kLanes - 1) / kLanes);
  for (int i = 0; i < n_warps; ++i) warps.push_back(std::make_unique<Warp>(*this, i));
}

bool Block::is_done() const {
  return std::ranges::all_of(warps, [](const auto& w) { return w->is_done(); });
}

int Block::n_alive() const {
  int n = 0;
  for (const auto& w : warps) n += __builtin_popcount(w->alive());
  return n;
}

bool Block::has_let_go() const { return lets_go || is_done(); }

bool Block::waits_for_previous() const {
  return std::ranges::any_of(warps, [](const auto& w) { return w->waits_for_previous; });
}

// Of warps that wait: when as many threads have come as are awaited, which are all that live unless
// the barrier says how many.
void Block::release_if_complete(int barrier) {
  const int expected = expected_threads[barrier] > 0 ? expected_threads[barrier] : n_alive();
  if (waiting_threads[barrier] == 0 || waiting_threads[barrier] < expected) return;
  Reduction& r = reductions[barrier];
  r.last_all = r.all, r.last_any = r.any, r.last_count = r.count;
  r.all = true, r.any = false, r.count = 0;
  waiting_threads[barrier] = 0;
  for (const auto& w : warps) {
    if (w->waits_for_block && w->barrier == barrier) w->waits_for_block = false;
  }
}

bool Block::run() {
  bool has_done_any = false, goes_on = true;
  for (int turn = 0; goes_on && turn < kTurns; ++turn) {
    goes_on = false;
    for (const auto& w : warps) {
      if (w->is_done() || w->waits_for_block) continue;
      if (w->waits_for_previous) {
        if (!grid.previous_is_done) continue;
        w->waits_for_previous = false;
      }
      if (w->run()) goes_on = has_done_any = true;
      if (std::exchange(pauses, false)) return true;
      if (w->is_done()) {
        for (int b = 0; b < 16; ++b) release_if_complete(b);
      }
    }
  }
  return has_done_any;
}

Block& Block::at_address(uint64_t address) {
  const auto rank_of = static_cast<unsigned>(address >> kRankShift & 0xff);
  return rank_of == 0 ? *this : *cluster->blocks.at(rank_of - 1);
}

std::byte* Block::shared(const Warp& w, const Instruction& i, uint64_t address, size_t n_bytes) {
  Block& b = at_address(address);
  const uint64_t offset = address & ((1u << kRankShift) - 1);
  if (offset + n_bytes > b.memory.size()) {
    fault(w, i,
          "shared memory at " + std::to_string(offset) + ", of " + std::to_string(b.memory.size()) +
              " bytes");
  }
  if (offset % n_bytes != 0 && n_bytes <= 16 && (n_bytes & (n_bytes - 1)) == 0) {
    fault(w, i, "shared memory at " + std::to_string(offset) + " is not aligned");
  }
  return b.memory.data() + offset;
}

void Block::deliver(uint32_t barrier) {
  for (size_t i = 0; i < deliveries.size();) {
    Delivery& d = deliveries[i];
    if (d.barrier != barrier) {
      ++i;
      continue;
    }
    const std::byte* const from = d.from ? d.from : d.bytes.data();
    std::memcpy(memory.data() + d.to, from, d.n_bytes);
    MBarrier& m = mbarriers[barrier];
    m.bytes -= static_cast<int64_t>(d.n_bytes);
    deliveries.erase(deliveries.begin() + static_cast<long>(i));
    m.settle();
  }
}

Grid::Grid(LaunchOf of, int n_sms_) : launch(std::move(of)), n_sms(n_sms_) {
  if (launch.block.count() > static_cast<unsigned>(launch.kernel->max_threads)) {
    throw std::runtime_error("kernel " + launch.kernel->name + ": more threads than it allows");
  }
  most_resident_ = static_cast<size_t>(n_sms) * 2;
}

void Grid::fill() {
  const unsigned n = launch.grid.count();
  while (next_ < n && (blocks_.size() + 1) * launch.cluster <=
                          std::max<size_t>(most_resident_, launch.cluster)) {
    Resident r;
    r.cluster = std::make_unique<Cluster>();
    for (unsigned i = 0; i < launch.cluster; ++i, ++next_) {
      const Dim at{next_ % launch.grid.x, next_ / launch.grid.x % launch.grid.y,
                   next_ / launch.grid.x / launch.grid.y};
      r.blocks.push_back(std::make_unique<Block>(*this, at, i, r.cluster.get()));
      r.cluster->blocks.push_back(r.blocks.back().get());
    }
    blocks_.push_back(std::move(r));
  }
}

bool Grid::run() {
  bool has_done = false;
  fill();
  for (Resident& r : blocks_) {
    for (const auto& b : r.blocks) has_done |= b->run();
  }
  for (size_t i = 0; i < blocks_.size();) {
    Resident& r = blocks_[i];
    if (std::ranges::all_of(r.blocks, [](const auto& b) { return b->is_done(); })) {
      if (launch.overlaps && !previous_is_done) {
        throw std::runtime_error("kernel " + launch.kernel->name +
                                 ": a block ends before the kernel in front of it has ended");
      }
      blocks_.erase(blocks_.begin() + static_cast<long>(i));
      has_done = true;
    } else {
      ++i;
    }
  }
  return has_done;
}

// Every block has said so, or has ended; none is still to come.
bool Grid::lets_next_begin() const {
  if (next_ < launch.grid.count()) return false;
  for (const Resident& r : blocks_) {
    for (const auto& b : r.blocks) {
      if (!b->has_let_go()) return false;
    }
  }
  return true;
}

}  // namespace sluice::emulated_gpu
