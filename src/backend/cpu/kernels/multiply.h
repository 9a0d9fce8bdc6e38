// The contract's row dot (quant/dot.h says it in words) for all types and widths, and the loop over
// a matrix around it. One input row is multiplied while weights are unpacked, in registers; for
// more of them the weights are unpacked into a tile that stays in L1. Rows that are not woven yet
// are woven on the way, chunk by chunk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/kernels/families.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/lanes.h"
#include "backend/cpu/kernels/unpack.h"

namespace sluice::backend::cpu {

template <typename Type>
concept HasSignedWeights = requires {
  Type::kSigned;
};

template <typename Type>
constexpr bool kIsBlockType = quant::is_block_form(Type::kForm);

// What the float steps take of one block of one input row.
struct InputBlock {
  const float *d, *y, *sum32, *sum16_low, *sum16_high;

  SLUICE_INLINE static InputBlock of(const QuantizedInputs& in, int64_t block, int row) {
    const int64_t n = in.n_rows, at = block * n + row, at_16 = 2 * block * n + row;
    return {in.d + at, in.y + at, in.sum32 + at, in.sum16 + at_16, in.sum16 + at_16 + n};
  }
};

// The float steps of a chunk: what is added to a row's sum for 256 columns, gathered in P and N.
// (Not members, or GCC 12 keeps those of several rows in memory.)
template <typename Lanes, typename Type>
struct Chain {
  using U = typename Lanes::U;
  using F = typename Lanes::F;
  static constexpr Form kForm = Type::kForm;
  static constexpr bool kBy16 = kForm == Form::super_16 || kForm == Form::super_16_min;
  static constexpr bool kHasMin =
      kForm == Form::block_min || kForm == Form::super_32_min || kForm == Form::super_16_min;

  SLUICE_INLINE static U dot4(U acc, U w, U q) {
    if constexpr (HasSignedWeights<Type>) return Lanes::dot4_signed(acc, w, q);
    return Lanes::dot4(acc, w, q);
  }

  // Sums of w*q start at 1.5 * 2^23 as a float has it, less what the weights' offset will put in:
  // around there a float's bits count by ones, so what integers are added to is a float at any
  // time. All sums are below 2^22, so nothing is rounded.
  static constexpr float kStart = 0x1.8p23f;
  SLUICE_INLINE static U start(const float* sum_of_q) {
    const F start = Lanes::splat(kStart);
    if constexpr (Type::kOffset == 0.0f) return Lanes::as_words(start);
    return Lanes::as_words(
        Lanes::fma(Lanes::splat(-Type::kOffset), Lanes::splat(*sum_of_q), start));
  }
  SLUICE_INLINE static F value(U sum) {
    return Lanes::add(Lanes::as_floats(sum), Lanes::splat(-kStart));
  }
  // scale * value(sum), rounded as that is: scale is a small integer, so scale * kStart is exact.
  SLUICE_INLINE static F scaled(F scale, U sum) {
    return Lanes::fma(scale, Lanes::as_floats(sum), Lanes::multiply(scale, Lanes::splat(-kStart)));
  }

  // A block of the input row, with the sums of w*q over it and the weights' scale and minimum.
  SLUICE_INLINE static void add_32(F& P, F& N, const InputBlock& in, U sum, F scale, F min) {
    const F d = Lanes::splat(*in.d);
    if constexpr (kIsBlockType<Type>) {
      P = Lanes::fma(Lanes::multiply(d, scale), value(sum), P);
    } else {
      P = Lanes::fma(d, scaled(scale, sum), P);
    }
    if constexpr (kHasMin) N = Lanes::fma(min, Lanes::splat(*in.y), N);
  }

  // The same with scales and minima for each 16. s0 S0 + s1 S1 is below 2^24 too, so exact.
  SLUICE_INLINE static void add_16(F& P, F& N, const InputBlock& in, const U (&sum)[2],
                                   const F (&scale)[2], const F (&min)[2]) {
    const F d = Lanes::splat(*in.d);
    const F I = Lanes::fma(scale[1], value(sum[1]), scaled(scale[0], sum[0]));
    P = Lanes::fma(d, I, P);
    if constexpr (kHasMin) {
      const F m = Lanes::fma(min[1], Lanes::splat(*in.sum16_high),
                             Lanes::multiply(min[0], Lanes::splat(*in.sum16_low)));
      N = Lanes::fma(d, m, N);
    }
  }

  SLUICE_INLINE static F of_chunk(F P, F N, F d, F dmin) {
    if constexpr (kForm == Form::block) return P;
    if constexpr (kForm == Form::block_min) return Lanes::add(P, N);
    if constexpr (kForm == Form::super_32 || kForm == Form::super_16) return Lanes::multiply(d, P);
    return Lanes::fma(d, P, Lanes::negate(Lanes::multiply(dmin, N)));
  }
};

// Takes what an Unpack hands out and multiplies it with one input row, from column `first` on.
template <typename Lanes, typename Type>
struct Direct {
  using U = typename Lanes::U;
  using F = typename Lanes::F;
  using Steps = Chain<Lanes, Type>;
  static constexpr int kColumns = kIsBlockType<Type> ? 32 : 256;
  static constexpr int kGroup = Steps::kBy16 ? 16 : 32;  // columns that share a scale
  static constexpr int kGroups = kColumns / kGroup;

  const QuantizedInputs& in;  // one row
  int64_t first;
  U sums[kColumns / 16] = {};  // by 16 columns even where a scale serves 32: shorter chains
  F scales[kGroups] = {}, mins[kGroups] = {};
  F d_ = {}, dmin_ = {};

  SLUICE_INLINE InputBlock block(int b) const {
    const int64_t at = first / 32 + b;
    return {in.d + at, in.y + at, in.sum32 + at, in.sum16 + 2 * at, in.sum16 + 2 * at + 1};
  }
  SLUICE_INLINE void begin() {
    unroll<kColumns / 32>([&](auto b) SLUICE_INLINE {
      const InputBlock at = block(b);
      sums[2 * b] = Steps::start(Steps::kBy16 ? at.sum16_low : at.sum32);
      sums[2 * b + 1] = Steps::kBy16 ? Steps::start(at.sum16_high) : Lanes::splat(0u);
    });
  }
  SLUICE_INLINE void word(int i, U w) {
    U& sum = sums[i / 4];
    sum = Steps::dot4(sum, w, Lanes::splat_word(in.q + first + 4 * i));
  }
  SLUICE_INLINE void scale(int i, F x) { scales[i] = x; }
  SLUICE_INLINE void min(int i, F x) { mins[i] = x; }
  SLUICE_INLINE void d(F x) { d_ = x; }
  SLUICE_INLINE void dmin(F x) { dmin_ = x; }

  SLUICE_INLINE void add_to(F& P, F& N) const {
    unroll<kColumns / 32>([&](auto b) SLUICE_INLINE {
      if constexpr (Steps::kBy16) {
        Steps::add_16(P, N, block(b), {sums[2 * b], sums[2 * b + 1]},
                      {scales[2 * b], scales[2 * b + 1]}, {mins[2 * b], mins[2 * b + 1]});
      } else {
        Steps::add_32(P, N, block(b), Lanes::add(sums[2 * b], sums[2 * b + 1]), scales[b], mins[b]);
      }
    });
  }
};

// A chunk of a stripe, and block b of it; the next stripe's stands `gap` bytes behind.
template <typename Block>
struct ChunkOf {
  using Woven = quant::Woven<sizeof(Block)>;
  const std::byte* data;
  int n_blocks;
  size_t gap;

  SLUICE_INLINE Source block(int b) const {
    const auto at = static_cast<size_t>(b);
    const std::byte* const words = data + static_cast<size_t>(n_blocks) * 8 * Woven::kOddBytes;
    return {data + at * 8 * Woven::kOddBytes, words + at * 8 * Woven::kWordBytes, gap};
  }
};

// What a chunk adds to the sums of its rows.
template <typename Lanes, typename Block>
SLUICE_INLINE inline typename Lanes::F direct_chunk(const ChunkOf<Block>& chunk,
                                                    const QuantizedInputs& in, int64_t first) {
  using Type = Unpack<Lanes, Block>;
  using Steps = Chain<Lanes, Type>;
  typename Lanes::F P = Lanes::splat(0.0f), N = P;
  if constexpr (kIsBlockType<Type>) {
    for (int b = 0; b < chunk.n_blocks; ++b) {
      Direct<Lanes, Type> out{in, first + 32 * b};
      out.begin();
      Type::block(chunk.block(b), 0, out);
      out.add_to(P, N);
    }
    return Steps::of_chunk(P, N, P, P);  // without d and dmin
  } else {
    Direct<Lanes, Type> out{in, first};
    out.begin();
    Type::super_block(chunk.block(0), out);
    out.add_to(P, N);
    return Steps::of_chunk(P, N, out.d_, out.dmin_);
  }
}

// 256 columns of as many rows as there are lanes, unpacked: lanes side by side.
template <int n_rows>
struct Tile {
  alignas(64) uint32_t words[64][n_rows];  // columns 4i .. 4i+3
  float scales[16][n_rows];
  float mins[16][n_rows];
  float d[n_rows];
  float dmin[n_rows];
};

// Puts what an Unpack hands out into a tile.
template <typename Lanes>
struct TileWriter {
  Tile<Lanes::kRows>& tile;

  SLUICE_INLINE void word(int i, typename Lanes::U w) { Lanes::store(w, tile.words[i]); }
  SLUICE_INLINE void scale(int i, typename Lanes::F x) { Lanes::store(x, tile.scales[i]); }
  SLUICE_INLINE void min(int i, typename Lanes::F x) { Lanes::store(x, tile.mins[i]); }
  SLUICE_INLINE void d(typename Lanes::F x) { Lanes::store(x, tile.d); }
  SLUICE_INLINE void dmin(typename Lanes::F x) { Lanes::store(x, tile.dmin); }
};

template <typename Lanes, typename Block>
[[gnu::noinline]] void fill_tile(ChunkOf<Block> chunk, Tile<Lanes::kRows>& tile) {
  using Type = Unpack<Lanes, Block>;
  TileWriter<Lanes> out{tile};
  if constexpr (kIsBlockType<Type>) {
    for (int b = 0; b < chunk.n_blocks; ++b) Type::block(chunk.block(b), b, out);
  } else {
    Type::super_block(chunk.block(0), out);
  }
}

// out[t][row] += what the tile's columns add, for n_tokens input rows of `in`, the first being
// input row `token`, from column `first` on.
template <typename Lanes, typename Type, int n_tokens>
[[gnu::noinline]] void add_products(const Tile<Lanes::kRows>& tile, const QuantizedInputs& in,
                                    int token, int64_t first, int n_blocks, float* out,
                                    int64_t out_stride) {
  using U = typename Lanes::U;
  using F = typename Lanes::F;
  using Steps = Chain<Lanes, Type>;
  F P[n_tokens], N[n_tokens];
  unroll<n_tokens>([&](auto t) SLUICE_INLINE { P[t] = N[t] = Lanes::splat(0.0f); });
  const int64_t n = in.n_rows;
  const int8_t* q = in.q + first * n + 4 * token;
  // Adds the next n_words words of the tile, times the next ones of the inputs.
  const auto add_dots = [&](auto n_words, int word, U(&sums)[n_tokens]) SLUICE_INLINE {
    unroll<n_words>([&](auto j) SLUICE_INLINE {
      const U w = Lanes::load(tile.words[word + j]);
      unroll<n_tokens>([&](auto t) SLUICE_INLINE {
        if constexpr (requires { Lanes::dot4_at(w, w, q); }) {
          sums[t] = Lanes::dot4_at(sums[t], w, q + 4 * t);
        } else {
          sums[t] = Steps::dot4(sums[t], w, Lanes::splat_word(q + 4 * t));
        }
      });
      q += 4 * n;
    });
  };
  for (int b = 0; b < n_blocks; ++b) {
    const auto block = [&](int t)
                           SLUICE_INLINE { return InputBlock::of(in, first / 32 + b, token + t); };
    U sums[n_tokens];
    if constexpr (Steps::kBy16) {
      unroll<n_tokens>([&](auto t) SLUICE_INLINE { sums[t] = Steps::start(block(t).sum16_low); });
      add_dots(Index<4>{}, 8 * b, sums);
      U high[n_tokens];
      unroll<n_tokens>([&](auto t) SLUICE_INLINE { high[t] = Steps::start(block(t).sum16_high); });
      add_dots(Index<4>{}, 8 * b + 4, high);
      const F scale[2] = {Lanes::load(tile.scales[2 * b]), Lanes::load(tile.scales[2 * b + 1])};
      const F min[2] = {Lanes::load(tile.mins[2 * b]), Lanes::load(tile.mins[2 * b + 1])};
      unroll<n_tokens>([&](auto t) SLUICE_INLINE {
        Steps::add_16(P[t], N[t], block(t), {sums[t], high[t]}, scale, min);
      });
    } else {
      unroll<n_tokens>([&](auto t) SLUICE_INLINE { sums[t] = Steps::start(block(t).sum32); });
      add_dots(Index<8>{}, 8 * b, sums);
      const F scale = Lanes::load(tile.scales[b]);
      const F min = Lanes::load(tile.mins[b]);
      unroll<n_tokens>(
          [&](auto t) SLUICE_INLINE { Steps::add_32(P[t], N[t], block(t), sums[t], scale, min); });
    }
  }
  const F d = Lanes::load(tile.d);
  const F dmin = Lanes::load(tile.dmin);
  unroll<n_tokens>([&](auto t) SLUICE_INLINE {
    float* const sum = out + t * out_stride;
    Lanes::store(Lanes::add(Lanes::load(sum), Steps::of_chunk(P[t], N[t], d, dmin)), sum);
  });
}

// Columns of a chunk; the last one of a row may be shorter.
constexpr int64_t kChunk = 256;

// The products of a matrix, by rows as Narrow takes them for one input row, as Wide takes them for
// more.
template <typename Narrow, typename Wide, typename Block>
struct Product {
  using Type = Unpack<Narrow, Block>;
  static_assert(Narrow::kRows == quant::kStripeRows && Wide::kRows % Narrow::kRows == 0);
  static_assert(Narrow::kSignedOffset == Wide::kSignedOffset);
  static constexpr size_t kStripe = quant::kStripeRows;
  static constexpr size_t kStep =
      sizeof(Block) * (kChunk / quant::Woven<sizeof(Block)>::kElems);  // bytes of a row

  // Chunks of as many stripes as the lanes take.
  template <typename Lanes>
  struct Room {
    alignas(64) std::byte bytes[Lanes::kRows / kStripe][kStripe * kStep];
  };

  int64_t n_cols;
  quant::Layout layout;
  size_t stride;  // from row to row, or as if they were not woven

  SLUICE_INLINE int n_blocks_at(int64_t first) const {
    return static_cast<int>((n_cols - first < kChunk ? n_cols - first : kChunk) / 32);
  }

  // The chunk at column `first` of the rows from `rows` on.
  template <typename Lanes>
  SLUICE_INLINE ChunkOf<Block> chunk_at(const std::byte* rows, int64_t first,
                                        Room<Lanes>& room) const {
    const size_t at = static_cast<size_t>(first / kChunk) * kStep;
    const int n_blocks = kIsBlockType<Type> ? n_blocks_at(first) : 1;
    if (layout == quant::Layout::stripes) {
      return {rows + kStripe * at, n_blocks, kStripe * stride};
    }
    for (auto& bytes : room.bytes) {
      // No CPU by itself follows eight rows at once; those behind them are one stream again.
      ask(rows + kStripe * (stride + at) + kAhead);
      quant::weave_chunk<sizeof(Block)>(n_blocks, rows + at, stride, bytes);
      rows += kStripe * stride;
    }
    return {room.bytes[0], n_blocks, sizeof(room.bytes[0])};
  }

  // Asks for eight rows' chunk ahead of time, for L2 or for L1.
  // Forced inline: GCC may drop calls of a function that only prefetches.
  enum Level { l2 = 2, l1 = 3 };
  template <Level level = l2>
  SLUICE_INLINE static void ask(const std::byte* later) {
    for (size_t i = 0; i < kStripe * kStep; i += 64) __builtin_prefetch(later + i, 0, level);
  }
  static constexpr size_t kAhead = 8192;

  // Narrow::kRows rows, one input row.
  void one_input(const std::byte* rows, const QuantizedInputs& in, float* out) const {
    typename Narrow::F sum = Narrow::splat(0.0f);
    Room<Narrow> room;
    const bool fetches = layout == quant::Layout::stripes && !kStripesAreFollowed;
    for (int64_t first = 0; first < n_cols; first += kChunk) {
      if (fetches) ask(rows + kStripe * kStep * static_cast<size_t>(first / kChunk) + kAhead);
      const ChunkOf<Block> chunk = chunk_at(rows, first, room);
      sum = Narrow::add(sum, direct_chunk<Narrow>(chunk, in, first));
    }
    Narrow::store(sum, out);
  }

  // Narrow::kRows rows, some input rows: for the few rows that are left over.
  void each_input(const std::byte* rows, const QuantizedInputs& in, float* out,
                  int64_t out_stride) const {
    if (in.n_rows == 1) return one_input(rows, in, out);
    Room<Narrow> room;
    Tile<Narrow::kRows> tile;
    for (int t = 0; t < in.n_rows; ++t) {
      Narrow::store(Narrow::splat(0.0f), out + t * out_stride);
    }
    for (int64_t first = 0; first < n_cols; first += kChunk) {
      fill_tile<Narrow>(chunk_at(rows, first, room), tile);
      for (int t = 0; t < in.n_rows; ++t) {
        add_products<Narrow, Type, 1>(tile, in, t, first, n_blocks_at(first), out + t * out_stride,
                                      out_stride);
      }
    }
  }

  // Wide::kRows rows.
  void many_inputs(const std::byte* rows, std::span<const QuantizedInputs> in, float* out,
                   int64_t out_stride) const {
    Tile<Wide::kRows> tile;
    Room<Wide> room;
    for (int64_t first = 0; first < n_cols; first += kChunk) {
      // The next rows' chunk: hardware loses the thread. A stripe before and a stripe behind the
      // work, since a CPU keeps track of few lines on their way.
      const bool asks = layout == quant::Layout::stripes;
      const std::byte* const next =
          rows + stride * Wide::kRows + kStripe * static_cast<size_t>(first / kChunk) * kStep;
      if (asks) ask<l1>(next);
      fill_tile<Wide>(chunk_at(rows, first, room), tile);
      if (asks && Wide::kRows > kStripe) ask<l1>(next + kStripe * stride);
      float* sums = out;
      for (const QuantizedInputs& some : in) {
        if (first == 0) clear(some.n_rows, sums, out_stride);
        add_to_all(tile, some, first, sums, out_stride);
        sums += some.n_rows * out_stride;
      }
    }
  }

  static void clear(int n_inputs, float* out, int64_t out_stride) {
    for (int t = 0; t < n_inputs; ++t) Wide::store(Wide::splat(0.0f), out + t * out_stride);
  }

  void add_to_all(const Tile<Wide::kRows>& tile, const QuantizedInputs& in, int64_t first,
                  float* out, int64_t out_stride) const {
    int t = 0;
    const auto in_steps_of = [&](auto n_tokens) SLUICE_INLINE {
      for (; t + n_tokens <= in.n_rows; t += n_tokens) {
        add_products<Wide, Type, n_tokens>(tile, in, t, first, n_blocks_at(first),
                                           out + t * out_stride, out_stride);
      }
    };
    in_steps_of(Index<Wide::kTokens>{});
    if constexpr (Wide::kTokens > 4) in_steps_of(Index<4>{});
    in_steps_of(Index<2>{});
    in_steps_of(Index<1>{});
  }
};

template <typename Narrow, typename Wide, typename Block>
void multiply_rows(const WeightRows& rows, std::span<const QuantizedInputs> in, float* out,
                   int64_t out_stride) {
  const size_t row_bytes =
      sizeof(Block) * static_cast<size_t>(rows.n_cols / quant::Woven<sizeof(Block)>::kElems);
  const Product<Narrow, Wide, Block> product{rows.n_cols, rows.layout, row_bytes};
  const auto row = [&](int64_t r) { return rows.data + row_bytes * static_cast<size_t>(r); };
  int64_t r = 0;
  if (in.size() > 1 || in[0].n_rows > 1) {
    for (; r + Wide::kRows <= rows.n_rows; r += Wide::kRows) {
      product.many_inputs(row(r), in, out + r, out_stride);
    }
  }
  for (; r + Narrow::kRows <= rows.n_rows; r += Narrow::kRows) {
    float* sums = out + r;
    for (const QuantizedInputs& some : in) {
      product.each_input(row(r), some, sums, out_stride);
      sums += some.n_rows * out_stride;
    }
  }
  // The rest, each with itself in all lanes. A stripe leaves none.
  const Product<Narrow, Wide, Block> same_row{rows.n_cols, quant::Layout::rows, 0};
  for (; r < rows.n_rows; ++r) {
    float* sums = out + r;
    for (const QuantizedInputs& some : in) {
      float lanes[kInputsTogether * Narrow::kRows];
      same_row.each_input(row(r), some, lanes, Narrow::kRows);
      for (int t = 0; t < some.n_rows; ++t) sums[t * out_stride] = lanes[t * Narrow::kRows];
      sums += some.n_rows * out_stride;
    }
  }
}

template <typename Narrow, typename Wide>
MultiplyRows multiply_rows_of(quant::Type type) {
  using quant::Type;
  switch (type) {
    case Type::q4_0:
      return multiply_rows<Narrow, Wide, quant::BlockQ4_0>;
    case Type::q4_1:
      return multiply_rows<Narrow, Wide, quant::BlockQ4_1>;
    case Type::q5_0:
      return multiply_rows<Narrow, Wide, quant::BlockQ5_0>;
    case Type::q5_1:
      return multiply_rows<Narrow, Wide, quant::BlockQ5_1>;
    case Type::q8_0:
      return multiply_rows<Narrow, Wide, quant::BlockQ8_0>;
    case Type::q2_k:
      return multiply_rows<Narrow, Wide, quant::BlockQ2_K>;
    case Type::q3_k:
      return multiply_rows<Narrow, Wide, quant::BlockQ3_K>;
    case Type::q4_k:
      return multiply_rows<Narrow, Wide, quant::BlockQ4_K>;
    case Type::q5_k:
      return multiply_rows<Narrow, Wide, quant::BlockQ5_K>;
    case Type::q6_k:
      return multiply_rows<Narrow, Wide, quant::BlockQ6_K>;
    case Type::iq4_nl:
      return multiply_rows<Narrow, Wide, quant::BlockIQ4_NL>;
    case Type::iq4_xs:
      return multiply_rows<Narrow, Wide, quant::BlockIQ4_XS>;
    case Type::mxfp4:
      return multiply_rows<Narrow, Wide, quant::BlockMXFP4>;
    case Type::f32:
    case Type::f16:
    case Type::bf16:
      break;
  }
  return nullptr;
}

}  // namespace sluice::backend::cpu
