// Sets of small numbers as arrays of bits, and how many of many sets hold each
// number: what the default policy's memory of past steps is made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

namespace sluice::policy {

template <size_t kWords>
using Bits = std::array<uint64_t, kWords>;

template <size_t kWords>
bool has(const Bits<kWords>& bits, size_t i) {
  return ((bits[i / 64] >> (i % 64)) & 1) != 0;
}

template <size_t kWords>
void flip_bit(Bits<kWords>& bits, size_t i) {
  bits[i / 64] ^= uint64_t{1} << (i % 64);
}

// Members are a ring: how far back from `from` the nearest one in the set is;
// all of the ring if there is none.
template <size_t kWords>
size_t members_back(const Bits<kWords>& bits, size_t from) {
  size_t n_passed = 0;
  size_t n_bits = from % 64 + 1;
  for (size_t i = 0, word = from / 64; i <= kWords; ++i) {
    const uint64_t rest = bits[word] << (64 - n_bits);
    if (rest != 0) return n_passed + static_cast<size_t>(std::countl_zero(rest));
    n_passed += n_bits;
    n_bits = 64;
    word = (word + kWords - 1) % kWords;
  }
  return kWords * 64;
}

// How many of some sets hold each member, for all members at once: the counts stand bit by bit in
// planes, to which sets are added sixteen at a time.
template <size_t kWords>
class MemberCounts {
 public:
  using Set = Bits<kWords>;

  // `indices` name the sets in `sets`; their number is a multiple of kBatch.
  static constexpr size_t kBatch = 16;
  MemberCounts(const Set* sets, std::span<const int> indices)
      : n_planes_(static_cast<size_t>(std::bit_width(indices.size()))) {
    for (size_t i = 0; i < indices.size(); i += kBatch) {
      Set carry = add<kFirstLate>(sets, indices.data() + i);
      for (size_t p = kFirstLate; p < n_planes_; ++p) {
        for (size_t w = 0; w < kWords; ++w) {
          carry[w] &= std::exchange(plane_[p][w], plane_[p][w] ^ carry[w]);
        }
      }
    }
  }

  int count(size_t member) const {
    int n = 0;
    for (size_t p = 0; p < n_planes_; ++p) n |= static_cast<int>(has(plane_[p], member)) << p;
    return n;
  }

  // Leaves in `members` those of the n-th highest count, moves those of higher counts to `higher`,
  // and returns how many of those left make n.
  int split_at(int n, Set& members, Set& higher) const {
    for (size_t p = n_planes_; p-- > 0;) {
      Set ones = {};
      int n_ones = 0;
      for (size_t w = 0; w < kWords; ++w) {
        ones[w] = members[w] & plane_[p][w];
        n_ones += std::popcount(ones[w]);
      }
      const bool are_few = n_ones < n;
      if (are_few) n -= n_ones;
      for (size_t w = 0; w < kWords; ++w) {
        higher[w] |= are_few ? ones[w] : 0;
        members[w] = are_few ? members[w] ^ ones[w] : ones[w];
      }
    }
    return n;
  }

 private:
  static constexpr size_t kMaxPlanes = 24;  // more than all experts of the largest model need
  static constexpr size_t kFirstLate = std::bit_width(kBatch) - 1;  // plane that batches carry into

  // Adds 2^kPlanes sets to as many planes; returns what they carry.
  template <size_t kPlanes>
  Set add(const Set* sets, const int* indices) {
    if constexpr (kPlanes == 0) {
      return sets[*indices];
    } else {
      const Set a = add<kPlanes - 1>(sets, indices);
      const Set b = add<kPlanes - 1>(sets, indices + (size_t{1} << (kPlanes - 1)));
      Set& plane = plane_[kPlanes - 1];
      Set carry;
      for (size_t w = 0; w < kWords; ++w) {
        const uint64_t differ = a[w] ^ b[w];
        carry[w] = (a[w] & b[w]) | (differ & plane[w]);
        plane[w] ^= differ;
      }
      return carry;
    }
  }

  size_t n_planes_;
  std::array<Set, kMaxPlanes> plane_ = {};
};

}  // namespace sluice::policy
