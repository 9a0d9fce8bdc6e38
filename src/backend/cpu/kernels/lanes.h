// Rows as lanes: what the kernels need of a vector of 32-bit lanes. A model of it (lanes_256.h,
// lanes_neon.h, avx512.cpp) is a struct Lanes with
//
//   kRows               rows at a time = lanes
//   kTokens             input rows at a time that keep the registers busy without spilling
//   kSignedOffset       what from_signed() adds to a weight
//   U, F                vectors of 32-bit integers and of floats
//   load_words(p, gap)  a field of all rows: eight of them side by side, the next eight `gap`
//                       bytes behind; load_halves and load_bytes likewise
//   dot4, dot4_signed   in each lane, acc + the dot product of 4 bytes of weights with 4 bytes of
//                       input: weights 0..63, or as from_signed() made them of -128..127
//
// and the usual operators. Files that are compiled for wider instructions than the program's
// baseline must not leave inline functions to the linker, which might take theirs for everybody's:
// all here is a template over types that are local to one file (tests/kernel_symbols.sh).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#define SLUICE_INLINE __attribute__((always_inline))

namespace sluice::backend::cpu {

template <int i>
struct Index {
  static constexpr int value = i;
  constexpr operator int() const { return i; }  // NOLINT(google-explicit-constructor): as a number
};

// f(Index<0>), f(Index<1>), ... f(Index<n-1>): a loop whose counter is a constant.
template <int n, typename F>
SLUICE_INLINE inline void unroll(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) SLUICE_INLINE { (f(Index<i>{}), ...); }
  (std::make_integer_sequence<int, n>{});
}

}  // namespace sluice::backend::cpu
