// Sums of products of numbers of f16 or bf16, by the tensor cores of four warps at once: 64 rows,
// 16 to a warp, times 64 or 128 columns, over 16 numbers each. Rows are in registers as in
// half_product.h, columns in shared memory, which all four warps read once. sm_90a alone; the
// products go on while the warps do something else. In g++ by the definition, a warp at a time
// (lanes.h).
//
// Columns stand in tiles of 64 numbers (128 bytes) by any number of lines that is a multiple of
// eight; the sixteen bytes i of line l are at 16 (i ^ l % 8), so that no bank has two of eight
// lines. A line is a column (by_line), or one number of all columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/half_product.h"

namespace sluice::backend::cuda {

constexpr int kGroupWarps = 4;
constexpr int kLineBytes = 128;
constexpr int kTileAlignment = 1024;  // eight lines

// Where 16 bytes of a line stand. at: of the line's bytes, a multiple of 16.
SLUICE_LANE_FN int byte_of_tile(int line, int at) {
  return line * kLineBytes + (at ^ line % 8 * 16);
}

#if defined(__CUDACC__)

// Tiles of columns, `stride` bytes from one to the next: the two words that the instruction reads.
class GroupColumns {
 public:
  SLUICE_LANE_FN GroupColumns(const uint8_t* tiles, int stride)
      : low_((static_cast<uint32_t>(__cvta_generic_to_shared(tiles)) >> 4) |
             static_cast<uint32_t>(stride) >> 4 << 16) {}
  SLUICE_LANE_FN GroupColumns behind(int bytes) const {
    GroupColumns out = *this;
    out.low_ += static_cast<uint32_t>(bytes) >> 4;
    return out;
  }
  SLUICE_LANE_FN uint64_t words() const {
    constexpr uint64_t kEightLines = kTileAlignment >> 4, kSwizzled = 1;
    return kSwizzled << 62 | kEightLines << 32 | low_;
  }

 private:
  uint32_t low_;
};

// Of products that were started: before the first that reads registers which were written since;
// the end of a batch; and the wait for all batches but the last n.
SLUICE_LANE_FN void begin_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
SLUICE_LANE_FN void end_batch() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int n>
SLUICE_LANE_FN void await_batches() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
#endif
}
// What the compiler must not read before, or write before, this place.
template <int n>
SLUICE_LANE_FN void hold(PerLane<FloatSums<n>>& sums) {
#pragma unroll
  for (auto& c : sums.value.c) {
#pragma unroll
    for (float& v : c) asm volatile("" : "+f"(v)::"memory");
  }
}
SLUICE_LANE_FN void hold(PerLane<RowHalves>& rows) {
#pragma unroll
  for (uint32_t& a : rows.value.a) asm volatile("" : "+r"(a)::"memory");
}

// Copies that were awaited are there for the tensor cores of others too, behind a barrier.
SLUICE_LANE_FN void show_copies() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#define SLUICE_SUM_4(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define SLUICE_SUM_16(i) \
  SLUICE_SUM_4(i), SLUICE_SUM_4(i + 1), SLUICE_SUM_4(i + 2), SLUICE_SUM_4(i + 3)
#define SLUICE_NAMES_32                                                                    \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31"
#define SLUICE_NAMES_64                                                                   \
  SLUICE_NAMES_32                                                                         \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52," \
  "%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

// sums += rows times columns, or = where not `adds`. by_line: a column is a line.
template <bool bf16, bool by_line, int n>
SLUICE_LANE_FN void multiply_group(PerLane<FloatSums<n>>& sums, const PerLane<RowHalves>& rows,
                                   const GroupColumns& columns, bool adds) {
  static_assert(n == 8 || n == 16);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  float(&c)[n][4] = sums.value.c;
  const uint32_t(&a)[4] = rows.value.a;
  const uint64_t b = columns.words();
  const int by_number = by_line ? 0 : 1;
#define SLUICE_GROUP_64(type)                                                          \
  asm volatile(                                                                        \
      "{.reg .pred p; setp.ne.b32 p, %37, 0;\n"                                        \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" SLUICE_NAMES_32 \
      "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;}"                                      \
      : SLUICE_SUM_16(0), SLUICE_SUM_16(4)                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds ? 1 : 0), "n"(by_number))
#define SLUICE_GROUP_128(type)                                                          \
  asm volatile(                                                                         \
      "{.reg .pred p; setp.ne.b32 p, %69, 0;\n"                                         \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" SLUICE_NAMES_64 \
      "}, {%64,%65,%66,%67}, %68, p, 1, 1, %70;}"                                       \
      : SLUICE_SUM_16(0), SLUICE_SUM_16(4), SLUICE_SUM_16(8), SLUICE_SUM_16(12)         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds ? 1 : 0), "n"(by_number))
  if constexpr (n == 8 && bf16) {
    SLUICE_GROUP_64("bf16");
  } else if constexpr (n == 8) {
    SLUICE_GROUP_64("f16");
  } else if constexpr (bf16) {
    SLUICE_GROUP_128("bf16");
  } else {
    SLUICE_GROUP_128("f16");
  }
#endif
}

#else

class GroupColumns {
 public:
  GroupColumns(const uint8_t* tiles, int stride) : at_(tiles), stride_(stride) {}
  GroupColumns behind(int bytes) const { return {at_, stride_, start_ + bytes}; }
  // Number k of a column. What behind() added stands in the addresses, before bytes change places.
  uint16_t number(bool by_line, int column, int k) const {
    const int line = by_line ? column : k, i = by_line ? k : column;
    const int at = start_ + line * kLineBytes + i % 64 * 2;
    uint16_t out;
    std::memcpy(&out, at_ + i / 64 * stride_ + (at ^ at / kLineBytes % 8 * 16), sizeof(out));
    return out;
  }

 private:
  GroupColumns(const uint8_t* at, int stride, int start)
      : at_(at), stride_(stride), start_(start) {}
  const uint8_t* at_;
  int stride_, start_ = 0;
};

inline void begin_products() {}
inline void end_batch() {}
template <int n>
void await_batches() {}
template <int n>
void hold(PerLane<FloatSums<n>>&) {}
inline void hold(PerLane<RowHalves>&) {}

template <bool bf16, bool by_line, int n>
void multiply_group(PerLane<FloatSums<n>>& sums, const PerLane<RowHalves>& rows,
                    const GroupColumns& columns, bool adds) {
  EACH_LANE(lane) {
    for (int i = 0; i < 4 * n; ++i) {
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float& sum = sums[lane].c[i / 4][i % 4];
      if (!adds) sum = 0.0f;
      for (int k = 0; k < 16; ++k) {
        const uint32_t row = rows[lane / 4 * 4 + k % 8 / 2].a[k / 8 * 2 + i % 4 / 2];
        sum = fma_rn(half_of<bf16>(row, k % 2),
                     half_of<bf16>(columns.number(by_line, column, k), 0), sum);
      }
    }
  }
}

#endif

}  // namespace sluice::backend::cuda
