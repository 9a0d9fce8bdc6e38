// A warp's run: lanes that went apart go on in the order of the text, the hindmost first, so that
// they meet again where their ways join.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/warp.h"

#include <climits>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "emulated_gpu/memory.h"

namespace sluice::emulated_gpu {
namespace {

constexpr int kTurn = 20000;  // instructions
constexpr int kLook = 200;    // that a warp takes at most which only looks again, in vain

}  // namespace

void fault(const Warp& warp, const Instruction& i, const std::string& what) {
  const Block& b = warp.block;
  throw std::runtime_error("kernel " + warp.kernel->name + ", block (" + std::to_string(b.at.x) +
                           ", " + std::to_string(b.at.y) + "), warp " + std::to_string(warp.index) +
                           ", PTX line " + std::to_string(i.line) + ", " + std::string(i.text) +
                           ": " + what);
}

Warp::Warp(Block& of, int index_) : kernel(of.grid.launch.kernel), block(of), index(index_) {
  const LaunchOf& launch = block.grid.launch;
  word_memory_ =
      std::make_unique_for_overwrite<uint32_t[]>(static_cast<size_t>(kernel->n_words) * kLanes);
  wide_memory_ =
      std::make_unique_for_overwrite<uint64_t[]>(static_cast<size_t>(kernel->n_wides) * kLanes);
  predicate_memory_.resize(static_cast<size_t>(kernel->n_predicates) + 1);
  words_ = word_memory_.get();
  wides_ = wide_memory_.get();
  predicates_ = predicate_memory_.data();
  local.resize(static_cast<size_t>(kernel->local_bytes) * kLanes, std::byte{0xff});
  const unsigned first = static_cast<unsigned>(index) * kLanes, n = launch.block.count();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned t = first + lane;
    if (t < n) alive_ |= 1u << lane;
    const auto set = [&](Special s, unsigned value) {
      words_[static_cast<unsigned>(s) * kLanes + lane] = value;
    };
    set(Special::tid_x, t % launch.block.x);
    set(Special::tid_y, t / launch.block.x % launch.block.y);
    set(Special::tid_z, t / launch.block.x / launch.block.y);
    set(Special::ntid_x, launch.block.x);
    set(Special::ntid_y, launch.block.y);
    set(Special::ntid_z, launch.block.z);
    set(Special::ctaid_x, block.at.x);
    set(Special::ctaid_y, block.at.y);
    set(Special::ctaid_z, block.at.z);
    set(Special::nctaid_x, launch.grid.x);
    set(Special::nctaid_y, launch.grid.y);
    set(Special::nctaid_z, launch.grid.z);
    set(Special::laneid, lane);
    set(Special::warpid, static_cast<unsigned>(index));
    set(Special::smid, (block.at.x + block.at.y) % static_cast<unsigned>(block.grid.n_sms));
    set(Special::cluster_ctarank, block.rank);
    set(Special::cluster_nctarank, launch.cluster);
    wides_[kParamRegister * kLanes + lane] = reinterpret_cast<uint64_t>(launch.params.data());
  }
  active_ = alive_;
  next_pc_ = INT_MAX;
}

void Warp::wrong_bank() const {
  fault(*this, kernel->code[static_cast<size_t>(pc_)], "an operand of another size");
}

void Warp::find_next() {
  next_pc_ = INT_MAX;
  for (const Group& g : others_) {
    if (!g.looks_again) next_pc_ = std::min(next_pc_, g.pc);
  }
}

// Lanes at one place become one group, and the hindmost group runs that neither waits for others
// nor has just looked in vain. False if there was none but those that look again.
bool Warp::regroup() {
  for (size_t i = 0; i < others_.size(); ++i) {
    for (size_t k = i + 1; k < others_.size();) {
      if (others_[k].pc == others_[i].pc) {
        others_[i].lanes |= others_[k].lanes;
        others_[i].waits = others_[i].looks_again = false;
        others_.erase(others_.begin() + static_cast<long>(k));
      } else {
        ++k;
      }
    }
  }
  const auto choose = [&] {
    int best = -1;
    for (size_t i = 0; i < others_.size(); ++i) {
      if (others_[i].waits || others_[i].looks_again) continue;
      if (best < 0 || others_[i].pc < others_[static_cast<size_t>(best)].pc) {
        best = static_cast<int>(i);
      }
    }
    return best;
  };
  int best = choose();
  const bool is_new = best >= 0;
  if (!is_new) {
    for (Group& g : others_) g.looks_again = false;
    best = choose();
  }
  if (best < 0) {  // all wait for each other: allowed at bar.warp.sync alone
    for (Group& g : others_) {
      const Instruction& i = kernel->code[static_cast<size_t>(g.pc)];
      if (i.kind != Kind::warp_barrier) fault(*this, i, "lanes of the warp never come here");
      g.waits = false;
      ++g.pc;
    }
    return regroup();
  }
  const Group chosen = others_[static_cast<size_t>(best)];
  others_.erase(others_.begin() + best);
  pc_ = chosen.pc;
  active_ = chosen.lanes;
  find_next();
  return is_new;
}

void Warp::leave(Mask lanes) {
  alive_ &= ~lanes;
  active_ &= ~lanes;
  if (active_ == 0 && alive_ != 0) {
    for (Group& g : others_) g.waits = false;  // there are fewer to wait for
    regroup();
  }
}

// What imm says is the operand with the mask.
Mask Warp::needed_by(const Instruction& i) {
  if (i.kind == Kind::block_barrier || i.imm < 0) return kAllLanes;
  return words(operand(i, static_cast<int>(i.imm)))[__builtin_ctz(active_)];
}

void Warp::go(const Instruction& i, Mask taken) {
  if (taken == 0) {
    ++pc_;
  } else if (taken == active_) {
    pc_ = i.target;
  } else {
    const Mask rest = active_ & ~taken;
    const bool jumps_ahead = i.target > pc_;
    others_.push_back({jumps_ahead ? i.target : pc_ + 1, jumps_ahead ? taken : rest});
    active_ = jumps_ahead ? rest : taken;
    pc_ = jumps_ahead ? pc_ + 1 : i.target;
    find_next();
  }
}

bool Warp::run() {
  bool has_done = false;
  for (int n = 0; n < kTurn && alive_ != 0; ++n) {
    if (pc_ >= next_pc_) {
      others_.push_back({pc_, active_});
      regroup();
    }
    const Instruction& i = kernel->code[static_cast<size_t>(pc_)];
    Mask lanes = active_;
    if (i.guard >= 0) {
      const Mask p = predicates_[i.guard];
      lanes &= i.guard_is_negated ? ~p : p;
    }
    switch (i.kind) {
      case Kind::plain:
        if (lanes) i.run(*this, i, lanes);
        break;
      case Kind::branch:
        go(i, lanes);
        has_done = true;
        continue;
      case Kind::exit:
        if (lanes == active_) {
          leave(lanes);
        } else {
          leave(lanes);
          ++pc_;
        }
        has_done = true;
        continue;
      case Kind::warp_wide:
      case Kind::warp_barrier:
      case Kind::block_barrier:
        // The lanes that its mask names, or all that live, have to be here.
        if ((needed_by(i) & alive_ & ~active_) != 0) {
          others_.push_back({pc_, active_, true});
          regroup();
          continue;
        }
        if (lanes) i.run(*this, i, lanes);
        break;
    }
    if (yields_) {
      yields_ = false;
      if (!again_) ++pc_;
      again_ = false;
      if (others_.empty()) return n > kLook;
      others_.push_back({pc_, active_, false, true});
      if (!regroup()) return n > kLook;
      continue;
    }
    has_done = true;
    if (!std::exchange(runs_again_, false)) ++pc_;
    if (waits_for_block || waits_for_previous) return true;
  }
  if (!others_.empty() && alive_ != 0) {  // a long loop without an end in sight: the others' turn
    others_.push_back({pc_, active_, false, true});
    regroup();
  }
  return has_done;
}

void Warp::finish_copies(Mask lanes, int behind) {
  std::erase_if(copies, [&](const Copy& c) {
    if (!(lanes >> c.lane & 1) || c.group >= groups[c.lane] - behind) return false;
    std::byte* const to = block.memory.data() + c.to;
    std::memcpy(to, c.from, static_cast<size_t>(c.n_read));
    std::memset(to + c.n_read, 0, static_cast<size_t>(c.n_bytes - c.n_read));
    return true;
  });
}

}  // namespace sluice::emulated_gpu
