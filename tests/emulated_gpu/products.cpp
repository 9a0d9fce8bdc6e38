// Products of the tensor cores, by the definition of their fragments. See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/handlers.h"
#include "emulated_gpu/values.h"

namespace sluice::emulated_gpu {
namespace {

using Name = std::vector<std::string_view>;

// Of m16n8k32, m16n8k16 and m8n8k16: element k of row r of A, and of column c of B, four to a word.
// D, A, B, C are operands in this order.
template <int m, int k_size, bool is_signed>
void integer_product(Warp& w, const Instruction& i, Mask) {
  constexpr int kRows = m / 8, kWords = k_size / 16, kA = kRows * kWords, kC = 2 * kRows;
  int32_t a[m][k_size], b[8][k_size];
  for (int l = 0; l < kLanes; ++l) {
    const int g = l / 4, t = l % 4;
    for (int word = 0; word < kA; ++word) {
      const uint32_t bits = Lanes<uint32_t>(w, w.operand(i, kC + word))[l];
      const int row = g + word % kRows * 8, first = word / kRows * 16 + 4 * t;
      for (int j = 0; j < 4; ++j) {
        const auto byte = static_cast<uint8_t>(bits >> 8 * j);
        a[row][first + j] = is_signed ? static_cast<int8_t>(byte) : byte;
      }
    }
    for (int word = 0; word < kWords; ++word) {
      const uint32_t bits = Lanes<uint32_t>(w, w.operand(i, kC + kA + word))[l];
      for (int j = 0; j < 4; ++j) b[g][word * 16 + 4 * t + j] = static_cast<int8_t>(bits >> 8 * j);
    }
  }
  uint32_t out[kLanes][kC];
  for (int l = 0; l < kLanes; ++l) {
    for (int n = 0; n < kC; ++n) {
      const int row = l / 4 + n / 2 * 8, column = l % 4 * 2 + n % 2;
      int32_t sum = 0;
      for (int k = 0; k < k_size; ++k) sum += a[row][k] * b[column][k];
      out[l][n] =
          Lanes<uint32_t>(w, w.operand(i, kC + kA + kWords + n))[l] + static_cast<uint32_t>(sum);
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int n = 0; n < kC; ++n) put(w, w.operand(i, n), l, out[l][n]);
  }
}

template <bool bf16>
float half_of(uint32_t word, int which) {
  const auto bits = static_cast<uint16_t>(word >> 16 * which);
  return bf16 ? bf16_to_float(bits) : half_to_float(bits);
}

// Rows of A as m16n8k16 and m16n8k8 have them.
template <bool bf16, int k_size>
void rows_of(Warp& w, const Instruction& i, int first, float (&a)[16][16]) {
  for (int l = 0; l < kLanes; ++l) {
    for (int word = 0; word < k_size / 4; ++word) {
      const uint32_t bits = Lanes<uint32_t>(w, w.operand(i, first + word))[l];
      const int row = l / 4 + word % 2 * 8, k = word / 2 * 8 + l % 4 * 2;
      a[row][k] = half_of<bf16>(bits, 0);
      a[row][k + 1] = half_of<bf16>(bits, 1);
    }
  }
}

template <bool bf16, int k_size>
void half_product(Warp& w, const Instruction& i, Mask) {
  constexpr int kA = k_size / 4, kB = k_size / 8;
  float a[16][16], b[8][16];
  rows_of<bf16, k_size>(w, i, 4, a);
  for (int l = 0; l < kLanes; ++l) {
    for (int word = 0; word < kB; ++word) {
      const uint32_t bits = Lanes<uint32_t>(w, w.operand(i, 4 + kA + word))[l];
      b[l / 4][word * 8 + l % 4 * 2] = half_of<bf16>(bits, 0);
      b[l / 4][word * 8 + l % 4 * 2 + 1] = half_of<bf16>(bits, 1);
    }
  }
  float out[kLanes][4];
  for (int l = 0; l < kLanes; ++l) {
    for (int n = 0; n < 4; ++n) {
      float sum = Lanes<float>(w, w.operand(i, 4 + kA + kB + n))[l];
      for (int k = 0; k < k_size; ++k)
        sum = std::fma(a[l / 4 + n / 2 * 8][k], b[l % 4 * 2 + n % 2][k], sum);
      out[l][n] = sum;
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int n = 0; n < 4; ++n) put(w, w.operand(i, n), l, out[l][n]);
  }
}

// wgmma with A in registers and B in shared memory, swizzled by 128 bytes: each warp its 16 rows.
template <bool bf16, int columns>
void group_product(Warp& w, const Instruction& i, Mask) {
  constexpr int kSums = columns / 2;
  float a[16][16];
  rows_of<bf16, 16>(w, i, kSums, a);
  const uint64_t b = Lanes<uint64_t>(w, w.operand(i, kSums + 4))[0];
  if (b >> 62 != 1) fault(w, i, "only columns in tiles of 128 bytes to a line are known here");
  const bool adds = w.predicate_of(w.operand(i, kSums + 5)) & 1;
  const bool by_number = Lanes<uint32_t>(w, w.operand(i, kSums + 8))[0] != 0;
  const uint64_t start = (b & 0x3fff) << 4, tile = (b >> 16 & 0x3fff) << 4,
                 eight = (b >> 32 & 0x3fff) << 4;
  thread_local float mine[columns][16];
  for (int n = 0; n < columns; ++n) {
    for (int k = 0; k < 16; ++k) {
      const auto line = static_cast<uint64_t>(by_number ? k : n),
                 number = static_cast<uint64_t>(by_number ? n : k);
      uint64_t at =
          start + line / 8 * eight + line % 8 * 128 + number % 64 * 2 + number / 64 * tile;
      at ^= (at >> 7 & 7) << 4;
      uint16_t bits;
      std::memcpy(&bits, w.block.shared(w, i, at, 2), 2);
      mine[n][k] = bf16 ? bf16_to_float(bits) : half_to_float(bits);
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int n = 0; n < kSums; ++n) {
      const int c = n / 4 * 8 + l % 4 * 2 + n % 2, row = l / 4 + n % 4 / 2 * 8;
      float sum = adds ? Lanes<float>(w, w.operand(i, n))[l] : 0.0f;
      for (int k = 0; k < 16; ++k) sum = std::fma(a[row][k], mine[c][k], sum);
      put(w, w.operand(i, n), l, sum);
    }
  }
}

// ldmatrix x1, x2, x4 of 8 x 8 numbers of 16 bits: lane l brings the place of row l % 8 of matrix l
// / 8.
template <int n, bool transposed>
void load_matrices(Warp& w, const Instruction& i, Mask) {
  const Lanes<uint32_t> at(w, w.operand(i, n));
  uint16_t rows[n * 8][8];
  for (int r = 0; r < n * 8; ++r) {
    std::memcpy(rows[r], w.block.shared(w, i, at[r] + static_cast<uint32_t>(i.offset), 16), 16);
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int j = 0; j < n; ++j) {
      const int r = 8 * j + l / 4, c = l % 4 * 2;
      const uint32_t lo = transposed ? rows[8 * j + c][l / 4] : rows[r][c];
      const uint32_t hi = transposed ? rows[8 * j + c + 1][l / 4] : rows[r][c + 1];
      put(w, w.operand(i, j), l, lo | hi << 16);
    }
  }
}

void nothing(Warp&, const Instruction&, Mask) {}

}  // namespace

Handler product_handler(const Name& name, Instruction& i) {
  const auto has = [&](std::string_view part) {
    return std::find(name.begin(), name.end(), part) != name.end();
  };
  const auto is_wide = [&] {
    i.kind = Kind::warp_wide;
    i.imm = -1;
  };
  if (name[0] == "wgmma") {
    is_wide();
    if (name[1] != "mma_async") return nothing;
    const bool bf16 = name.back() == "bf16";
    if (has("m64n64k16")) return bf16 ? group_product<true, 64> : group_product<false, 64>;
    if (has("m64n128k16")) return bf16 ? group_product<true, 128> : group_product<false, 128>;
    return nullptr;
  }
  if (name[0] == "ldmatrix") {
    is_wide();
    if (has("x4")) return has("trans") ? load_matrices<4, true> : load_matrices<4, false>;
    if (has("x2")) return has("trans") ? load_matrices<2, true> : load_matrices<2, false>;
    return nullptr;
  }
  if (name[0] != "mma") return nullptr;
  is_wide();
  const bool is_signed = name[name.size() - 3] == "s8";
  if (name.back() == "s32") {
    if (has("m16n8k32"))
      return is_signed ? integer_product<16, 32, true> : integer_product<16, 32, false>;
    if (has("m16n8k16"))
      return is_signed ? integer_product<16, 16, true> : integer_product<16, 16, false>;
    if (has("m8n8k16"))
      return is_signed ? integer_product<8, 16, true> : integer_product<8, 16, false>;
    return nullptr;
  }
  const bool bf16 = has("bf16");
  if (has("m16n8k16")) return bf16 ? half_product<true, 16> : half_product<false, 16>;
  if (has("m16n8k8")) return bf16 ? half_product<true, 8> : half_product<false, 8>;
  return nullptr;
}

}  // namespace sluice::emulated_gpu
