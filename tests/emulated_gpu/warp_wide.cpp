// What the lanes of a warp, or the warps of a block, do together; and handler_of(). See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/lanewise.h"

namespace sluice::emulated_gpu {
namespace {

enum Shuffle { idx, bfly, up, down };

// d|p, a, b, c, mask
template <Shuffle how>
void shuffle(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<uint32_t> a(w, w.operand(i, 2)), b(w, w.operand(i, 3)), c(w, w.operand(i, 4));
  uint32_t out[kLanes] = {};
  Mask in_range = 0;
  each(lanes, [&](int l) {
    const unsigned lane = static_cast<unsigned>(l), clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    const unsigned most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    unsigned from = 0;
    bool is_in = false;
    switch (how) {
      case idx:
        from = least | (b[l] & 31 & ~segment), is_in = from <= most;
        break;
      case bfly:
        from = lane ^ (b[l] & 31), is_in = from <= most;
        break;
      case up:
        from = lane - (b[l] & 31), is_in = static_cast<int>(from) >= static_cast<int>(most);
        break;
      case down:
        from = lane + (b[l] & 31), is_in = from <= most;
        break;
    }
    if (!is_in) from = lane;
    if (!(lanes >> from & 1))
      fault(w, i,
            "lane " + std::to_string(l) + " reads lane " + std::to_string(from) +
                ", which is not here");
    out[l] = a[static_cast<int>(from)];
    in_range |= static_cast<Mask>(is_in) << l;
  });
  each(lanes, [&](int l) { put(w, w.operand(i, 0), l, out[l]); });
  put_predicate(w, w.operand(i, 1), lanes, in_range);
}

enum Vote { ballot, any, all };
template <Vote how>
void vote(Warp& w, const Instruction& i, Mask lanes) {
  const Mask says = w.predicate_of(w.operand(i, 1)) & lanes;
  if (how == ballot) {
    each(lanes, [&](int l) { put(w, w.operand(i, 0), l, says); });
  } else {
    put_predicate(w, w.operand(i, 0), lanes,
                  (how == any ? says != 0 : says == lanes) ? kAllLanes : 0);
  }
}

template <typename T, typename F>
void reduce(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<T> a(w, w.operand(i, 1));
  bool is_first = true;
  T out{};
  each(lanes, [&](int l) {
    out = is_first ? a[l] : F()(out, a[l]);
    is_first = false;
  });
  each(lanes, [&](int l) { put(w, w.operand(i, 0), l, out); });
}

template <typename T>
Handler reduce_handler(std::string_view how) {
  if (how == "add") return reduce<T, Add>;
  if (how == "min") return reduce<T, Least>;
  if (how == "max") return reduce<T, Most>;
  if (how == "and") return reduce<T, And>;
  if (how == "or") return reduce<T, Or>;
  return nullptr;
}

void meet_warp(Warp&, const Instruction&, Mask) {}

// bar.sync a(, n); bar.red.op d, a(, n), p. imm: which operand the barrier is.
int arrive(Warp& w, const Instruction& i, int first, bool has_count) {
  const auto barrier =
      static_cast<int>(Lanes<uint32_t>(w, w.operand(i, first))[__builtin_ctz(w.alive())]);
  if (barrier < 0 || barrier > 15) fault(w, i, "no such barrier");
  Block& b = w.block;
  b.expected_threads[barrier] =
      has_count
          ? static_cast<int>(Lanes<uint32_t>(w, w.operand(i, first + 1))[__builtin_ctz(w.alive())])
          : 0;
  b.waiting_threads[barrier] += has_count ? kLanes : __builtin_popcount(w.alive());
  w.barrier = barrier;
  w.waits_for_block = true;
  return barrier;
}

void meet_block(Warp& w, const Instruction& i, Mask) {
  const int barrier = arrive(w, i, 0, w.operand(i, 1).bank != Bank::none);
  w.block.release_if_complete(barrier);
}

// The result is there when the barrier is complete, so the instruction is run twice.
enum Fold { fold_and, fold_or, fold_count };
template <Fold how>
void meet_and_fold(Warp& w, const Instruction& i, Mask lanes) {
  const bool has_count = w.operand(i, 3).bank != Bank::none;
  const Operand& p = w.operand(i, has_count ? 3 : 2);
  Block& b = w.block;
  if (w.is_folding) {
    w.is_folding = false;
    const Block::Reduction& r = b.reductions[w.barrier];
    if (how == fold_count) {
      each(lanes, [&](int l) { put(w, w.operand(i, 0), l, static_cast<uint32_t>(r.last_count)); });
    } else {
      put_predicate(w, w.operand(i, 0), lanes,
                    (how == fold_and ? r.last_all : r.last_any) ? kAllLanes : 0);
    }
    return;
  }
  const Mask says = w.predicate_of(p) & lanes;
  const int barrier = arrive(w, i, 1, has_count);
  Block::Reduction& r = b.reductions[barrier];
  r.all &= says == lanes;
  r.any |= says != 0;
  r.count += __builtin_popcount(says);
  w.is_folding = true;
  w.again();
  b.release_if_complete(barrier);
}

}  // namespace

Handler warp_handler(const Name& name, Instruction& i) {
  const std::string_view op = name[0];
  const auto is_wide = [&](int mask_operand) {
    i.kind = Kind::warp_wide;
    i.imm = mask_operand;
  };
  if (op == "shfl") {
    is_wide(5);
    return name[2] == "idx"    ? shuffle<idx>
           : name[2] == "bfly" ? shuffle<bfly>
           : name[2] == "up"   ? shuffle<up>
                               : shuffle<down>;
  }
  if (op == "vote") {
    is_wide(2);
    return name[2] == "ballot" ? vote<ballot>
           : name[2] == "any"  ? vote<any>
           : name[2] == "all"  ? vote<all>
                               : nullptr;
  }
  if (op == "redux") {
    is_wide(2);
    return name.back() == "s32" ? reduce_handler<int32_t>(name[2])
                                : reduce_handler<uint32_t>(name[2]);
  }
  if (op == "bar" && name[1] == "warp") {
    is_wide(0);
    i.kind = Kind::warp_barrier;
    return meet_warp;
  }
  if (op == "bar" || (op == "barrier" && name[1] != "cluster")) {
    i.kind = Kind::block_barrier;
    if (name[1] == "sync") return meet_block;
    if (name[1] == "red")
      return name[2] == "and"  ? meet_and_fold<fold_and>
             : name[2] == "or" ? meet_and_fold<fold_or>
                               : meet_and_fold<fold_count>;
  }
  return nullptr;
}

Handler handler_of(const Name& name, Instruction& i) {
  for (Handler (*const family)(const Name&, Instruction&) :
       {memory_handler, number_handler, bit_handler, conversion_handler, copy_handler, warp_handler,
        product_handler}) {
    if (const Handler found = family(name, i)) return found;
  }
  return nullptr;
}

}  // namespace sluice::emulated_gpu
