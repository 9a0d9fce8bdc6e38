// Warps, blocks and grids while they run: registers, which lanes stand where, barriers, and copies
// that are under way. Copies arrive as late as they may: when somebody waits for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulated_gpu/program.h"

namespace sluice::emulated_gpu {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
  unsigned count() const { return x * y * z; }
};

struct LaunchOf {
  const Kernel* kernel = nullptr;
  Dim grid, block;
  unsigned cluster = 1;
  size_t dynamic_bytes = 0;
  bool overlaps = false;  // may begin before the kernel in front of it has ended
  std::vector<std::byte> params;
};

// A fault of a kernel: what it did, where.
[[noreturn]] void fault(const Warp& warp, const Instruction& i, const std::string& what);

class Grid;
class Block;

// Generic addresses of shared and local memory; all others are the host's.
constexpr uint64_t kSharedWindow = uint64_t{1} << 60;
constexpr uint64_t kLocalWindow = uint64_t{2} << 60;
constexpr uint64_t kWindows = uint64_t{3} << 60;
// Of a block of the cluster, in a shared address: its rank + 1.
constexpr int kRankShift = 24;

struct MBarrier {
  int expected = 0, pending = 0;
  int64_t bytes = 0;
  unsigned phase = 0;
  void settle() {
    if (pending == 0 && bytes == 0) {
      ++phase;
      pending = expected;
    }
  }
};

class Warp {
 public:
  Warp(Block& block, int index);

  uint32_t* words(const Operand& o) {
    if (o.bank != Bank::word) [[unlikely]]
      wrong_bank();
    return o.index >= 0 ? words_ + o.index * kLanes
                        : const_cast<uint32_t*>(kernel->word_constants.data()) + ~o.index * kLanes;
  }
  uint64_t* wides(const Operand& o) {
    if (o.bank != Bank::wide) [[unlikely]]
      wrong_bank();
    return o.index >= 0 ? wides_ + o.index * kLanes
                        : const_cast<uint64_t*>(kernel->wide_constants.data()) + ~o.index * kLanes;
  }
  Mask& predicate(const Operand& o) { return predicates_[o.index]; }
  Mask predicate_of(const Operand& o) const {
    return o.is_negated ? ~predicates_[o.index] : predicates_[o.index];
  }
  const Operand& operand(const Instruction& i, int k) const {
    return kernel->operands[i.first + static_cast<uint32_t>(k)];
  }

  // Runs until it waits for others, or for some thousand instructions. Whether it has done anything
  // but to look again.
  bool run();
  bool is_done() const { return alive_ == 0; }
  Mask alive() const { return alive_; }

  // What handlers ask for. `again`: the instruction is run once more when the warp goes on.
  void yield(bool again) { yields_ = true, again_ = again; }
  void again() { runs_again_ = true; }

  const Kernel* kernel;
  Block& block;
  int index;
  bool waits_for_block = false;     // at a barrier
  bool waits_for_previous = false;  // for the kernels in front
  bool has_waited = false;
  bool is_folding = false;  // between the halves of bar.red
  int barrier = -1;
  unsigned cluster_phase = 0;
  std::vector<std::byte> local;  // [lane][local_bytes]

  // cp.async of each lane, by group.
  struct Copy {
    int lane, group, n_bytes, n_read;
    uint32_t to;
    const std::byte* from;
  };
  std::vector<Copy> copies;
  int groups[kLanes] = {};
  void finish_copies(Mask lanes, int behind);  // but the last `behind` groups

 private:
  struct Group {
    int pc;
    Mask lanes;
    bool waits = false, looks_again = false;
  };
  [[noreturn]] void wrong_bank() const;
  bool regroup();
  void find_next();
  void leave(Mask lanes);
  void go(const Instruction& i, Mask taken);
  Mask needed_by(const Instruction& i);

  uint32_t* words_ = nullptr;
  uint64_t* wides_ = nullptr;
  Mask* predicates_ = nullptr;
  std::unique_ptr<uint32_t[]> word_memory_;  // as it comes: kernels write before they read
  std::unique_ptr<uint64_t[]> wide_memory_;
  std::vector<Mask> predicate_memory_;
  Mask alive_ = 0, active_ = 0;
  int pc_ = 0, next_pc_ = 0;
  bool yields_ = false, again_ = false, runs_again_ = false;
  std::vector<Group> others_;
};

struct Cluster {
  std::vector<Block*> blocks;
  int arrived = 0;
  unsigned phase = 0;
};

class Block {
 public:
  Block(Grid& grid, Dim at, unsigned rank, Cluster* cluster);

  // Runs all warps until none can go on by itself. Whether anything was done.
  bool run();
  bool is_done() const;
  bool waits_for_previous() const;  // all that can run
  bool has_let_go() const;          // of the next kernel: by all threads

  std::byte* shared(const Warp& w, const Instruction& i, uint64_t address, size_t n_bytes);
  Block& at_address(uint64_t address);
  void release_if_complete(int barrier);
  int n_alive() const;

  // Arrives with the bytes it brings when somebody waits for the barrier.
  void deliver(uint32_t barrier);
  struct Delivery {
    uint32_t barrier;
    uint32_t to;
    std::vector<std::byte> bytes;
    const std::byte* from;
    size_t n_bytes;
  };
  std::vector<Delivery> deliveries;
  std::unordered_map<uint32_t, MBarrier> mbarriers;

  Grid& grid;
  Dim at;
  unsigned rank;
  Cluster* cluster;
  std::vector<std::byte> memory;
  std::vector<std::unique_ptr<Warp>> warps;
  struct Reduction {
    bool is_used = false;
    bool all = true, any = false;
    int count = 0;
    bool last_all = true, last_any = false;
    int last_count = 0;
  };
  Reduction reductions[16];
  int waiting_threads[16] = {};
  int expected_threads[16] = {};
  bool lets_go = false;  // the next kernel begin
  bool pauses = false;   // so that it can
};

// One launch.
class Grid {
 public:
  Grid(LaunchOf launch, int n_sms);

  bool run();  // a turn of every block that is there; whether anything was done
  bool is_done() const { return blocks_.empty() && next_ == launch.grid.count(); }
  bool lets_next_begin() const;
  bool previous_is_done = true;

  LaunchOf launch;
  int n_sms;

 private:
  void fill();
  struct Resident {
    std::unique_ptr<Cluster> cluster;
    std::vector<std::unique_ptr<Block>> blocks;
  };
  std::deque<Resident> blocks_;
  unsigned next_ = 0;
  size_t most_resident_;
};

template <typename F>
inline void each(Mask lanes, const F& f) {
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
    return;
  }
  for (Mask m = lanes; m; m &= m - 1) f(__builtin_ctz(m));
}

}  // namespace sluice::emulated_gpu
