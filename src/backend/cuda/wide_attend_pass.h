// Attention of sixteen queries over tiles of keys and values, by one warp: scores, an online
// softmax and the weighted sum of values. In a kernel as in g++ (lanes.h); part of wide_attend.cu.
//
// As in attend_pass.h both products are tensor cores' (half_product.h), and which dimension or
// position is which number of a product is free: a lane reads 16 bytes at a time as they stand in
// the cache, and weighs the positions it scored. Here the sixteen rows of a product are sixteen
// queries, each in two halves (a high part and what is left) that meet the same keys one after the
// other; so are the weights. Exponentials are powers of two, and scores are scaled by log2(e).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend_heads.h"
#include "backend/cuda/attend_parts.h"
#include "backend/cuda/half_product.h"
#include "backend/cuda/segment.h"

namespace sluice::backend::cuda {

constexpr int kPassRows = 16;      // queries of a warp
constexpr int kQueryParts = 2;     // halves of a number
constexpr float kWeightBits = 15;  // weights are 2^15 at most, so that f16 holds small ones too
constexpr float kLog2E = 1.44269504088896341f;

#if defined(__CUDACC__)
SLUICE_LANE_FN float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
#else
inline float power_of_two(float x) { return std::exp2(x); }
#endif

// Two floats, each as two halves.
template <bool bf16>
struct TwoParts {
  uint32_t high, low;

  SLUICE_LANE_FN TwoParts(float x0, float x1) {
    high = packed(x0, x1);
    low = packed(sub_rn(x0, half_of<bf16>(high, 0)), sub_rn(x1, half_of<bf16>(high, 1)));
  }

 private:
  static SLUICE_LANE_FN uint32_t packed(float x0, float x1) {  // to the nearest
#if defined(__CUDACC__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)
    uint32_t out;
    if constexpr (bf16) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(x1), "f"(x0));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(x1), "f"(x0));
    }
    return out;
#else
    const auto half = [](float x) -> uint32_t { return bf16 ? to_bf16(x) : to_f16(x); };
    return half(x0) | half(x1) << 16;
#endif
  }
};

// A tile of keys and values of f16 or bf16 in shared memory; rows are so far apart that the lanes
// of a load use other banks. Lane (g, t) reads 16 bytes of the keys 8 n + g from 64 m + 16 t on,
// and of the values 16 j + {2 t, 2 t + 1, 2 t + 8, 2 t + 9} from 128 m + 16 g on.
template <int dims>
struct KvTile {
  static constexpr int kKeys = dims == 256 ? 32 : 64;
  static constexpr int kKeyStride = 2 * dims + 64, kValueStride = 2 * dims + 16;
  uint8_t keys[kKeys][kKeyStride];
  uint8_t values[kKeys][kValueStride];

  SLUICE_LANE_FN const uint4& key(int n, int m, int lane) const {
    return *reinterpret_cast<const uint4*>(keys[8 * n + lane / 4] + 64 * m + lane % 4 * 16);
  }
  SLUICE_LANE_FN const uint4& value(int j, int k, int m, int lane) const {
    return *reinterpret_cast<const uint4*>(values[16 * j + lane % 4 * 2 + k % 2 + k / 2 * 8] +
                                           128 * m + lane / 4 * 16);
  }
};

// Where number i of a query stands, for even i: in its place, or for groups of warps where a lane's
// numbers of two products, 32 m + {0, 1, 8, 9, 16, 17, 24, 25} + 2 t, stand side by side.
SLUICE_LANE_FN int place_in_query(int i, bool by_groups) {
  return by_groups ? i / 32 * 32 + i % 8 * 4 + i / 16 % 2 * 4 + i / 8 % 2 * 2 : i;
}

// A query as the pass reads it, by one warp: [kQueryParts][dims] halves at `out`. head: [dims].
// Returns what scores are to be multiplied by: a power of two that was taken off the query so that
// f16 holds it, log2(e) and 1 / sqrt(head_dim).
template <int dims, bool bf16>
SLUICE_LANE_FN PerLane<float> write_query(const float* head, int head_dim, bool by_groups,
                                          uint16_t* out) {
  PerLane<uint32_t> peaks;
  EACH_LANE(lane) {
    peaks[lane] = 0;
    SLUICE_UNROLL for (int i = lane; i < dims; i += kWarp) {
      const uint32_t size = bits_of(head[i]) & 0x7fffffffu;
      peaks[lane] = size > peaks[lane] ? size : peaks[lane];
    }
  }
  peaks = most_of_lanes(peaks);
  PerLane<float> scale;
  EACH_LANE(lane) {
    const uint32_t e = peaks[lane] >> 23, power = e < 1 ? 1 : e > 253 ? 253 : e;
    const float up = as_float((254 - power) << 23);
    SLUICE_UNROLL for (int i = 2 * lane; i < dims; i += 2 * kWarp) {
      const TwoParts<bf16> two(mul_rn(head[i], up), mul_rn(head[i + 1], up));
      uint16_t* const at = out + place_in_query(i, by_groups);
      *reinterpret_cast<uint32_t*>(at) = two.high;
      *reinterpret_cast<uint32_t*>(at + dims) = two.low;
    }
    scale[lane] =
        mul_rn(as_float(power << 23), div_rn(kLog2E, sqrt_rn(static_cast<float>(head_dim))));
  }
  return scale;
}

// Columns of a result: those from 64 m + 16 t on.
struct SixteenColumns {
  float v[16];
};

// Sixteen columns of each lane as int8 (the contract's part A), where a block of 32 is of two
// neighbours. q: 16-aligned, where a lane's own go.
SLUICE_LANE_FN void quantize_columns(const PerLane<SixteenColumns>& values,
                                     const PerLane<Int8Place>& to) {
  const auto most = [](uint32_t a, uint32_t b) { return a > b ? a : b; };
  PerLane<uint32_t> peaks;
  PerLane<float> steps;
  PerLane<int> sums;
  PerLane<uint4> bytes;
  EACH_LANE(lane) {
    peaks[lane] = 0;
    SLUICE_UNROLL for (const float v : values[lane].v) {
      peaks[lane] = most(peaks[lane], bits_of(v) & 0x7fffffffu);
    }
  }
  peaks = fold_lanes<2>(peaks, most);
  EACH_LANE(lane) {
    const float peak = as_float(peaks[lane]);
    const bool is_zero = peak < 0x1p-100f;
    const float scale = is_zero ? 0.0f : div_rn(127.0f, peak);
    steps[lane] = is_zero ? 0.0f : mul_rn(peak, 1.0f / 127.0f);
    uint32_t w[4];
    sums[lane] = 0;
    SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
      const auto rounded = [&](int k) {
        return static_cast<uint32_t>(to_nearest(mul_rn(values[lane].v[4 * i + k], scale)));
      };
      w[i] = pick_bytes(pick_bytes(rounded(0), rounded(1), 0x0040u),
                        pick_bytes(rounded(2), rounded(3), 0x0040u), 0x5410u);
      sums[lane] += sum_of_bytes(w[i]);
    }
    bytes[lane] = {w[0], w[1], w[2], w[3]};
  }
  sums = fold_lanes<2>(sums, [](int a, int b) { return a + b; });
  EACH_LANE(lane) {
    const Int8Place& at = to[lane];
    if (at.exists) *reinterpret_cast<uint4*>(at.q) = bytes[lane];
    if (at.exists && lane % 2 == 0) {
      *at.d = steps[lane];
      *at.y = mul_rn(steps[lane], to_float(sums[lane]));
    }
  }
}

// Of the two queries of a lane, g and g + 8 (r is 0 or 1).
template <int dims, bool bf16>
class WidePass {
 public:
  static constexpr int kKeys = KvTile<dims>::kKeys;

  // queries: [2], each [kQueryParts][dims] halves.
  SLUICE_LANE_FN void begin(const PerLane<const uint16_t*> (&queries)[2],
                            const PerLane<float> (&scales)[2]) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        at_[r][lane] = queries[r][lane], scale_[r][lane] = scales[r][lane];
        peak_[r][lane] = kNoPeak, sum_[r][lane] = 0.0f;
        SLUICE_UNROLL for (int i = 0; i < (kKeeps ? kGroups * kQueryParts : 0); ++i) {
          kept_[r][i][lane] =
              load_16_past_l1(at_[r][lane] + i / kGroups * dims + i % kGroups * 32 + lane % 4 * 8);
        }
      }
      SLUICE_UNROLL for (auto& c : values_[lane].c) SLUICE_UNROLL for (float& v : c) v = 0.0f;
    }
  }

  // A tile whose first key is `first` of its sequence. Queries see the keys before limits[r], which
  // is asked where `masks`: else they see all. Values that none sees are numbers.
  SLUICE_LANE_FN void add(const KvTile<dims>& kv, int first, bool masks,
                          const PerLane<int> (&limits)[2]) {
    PerLane<Scores> scores;
    multiply_keys(kv, scores);
    if (masks) mask(first, limits, scores);
    soften(scores);
    SLUICE_UNROLL for (int j = 0; j < kKeys / 16; ++j) add_values(kv, j, scores);
  }

  // The results, 16 columns at a time: to(r, column, values) for what a lane has.
  template <typename To>
  SLUICE_LANE_FN void end(const To& to) const {
    SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
      const PerLane<float> sums =
          fold_lanes<4>(sum_[r], [](float a, float b) { return add_rn(a, b); });
      SLUICE_UNROLL for (int m = 0; m < dims / 64; ++m) {
        PerLane<SixteenColumns> out;
        EACH_LANE(lane) {
          SLUICE_UNROLL for (int j = 0; j < 16; ++j) {
            const float sum = sums[lane];  // 0: a query that saw nothing
            out[lane].v[j] =
                sum > 0.0f ? div_rn(values_[lane].c[8 * m + j % 8][2 * r + j / 8], sum) : 0.0f;
          }
        }
        to(r, 64 * m, out);
      }
    }
  }

 private:
  static constexpr int kChains = 4;  // products that do not wait for each other
  using Scores = FloatSums<kKeys / 8>;
  static constexpr int kGroups = dims / 32;
  static constexpr bool kKeeps = dims <= 128;  // queries in registers; else they are read again
  struct Words {
    uint32_t w[4];
  };
  static SLUICE_LANE_FN Words words_of(const uint4& v) { return {{v.x, v.y, v.z, v.w}}; }

  SLUICE_LANE_FN uint4 query(int r, int part, int m, int lane) const {
    if constexpr (kKeeps) return kept_[r][part * kGroups + m][lane];
    return load_16_past_l1(at_[r][lane] + part * dims + m * 32 + lane % 4 * 8);
  }

  static SLUICE_LANE_FN void mask(int first, const PerLane<int> (&limits)[2],
                                  PerLane<Scores>& scores) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int n = 0; n < kKeys / 8; ++n) {
        SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
          const bool is_seen = first + 8 * n + lane % 4 * 2 + i % 2 < limits[i / 2][lane];
          float& score = scores[lane].c[n][i];
          score = is_seen ? score : as_float(0xff800000u);  // minus infinity: counts by 0
        }
      }
    }
  }

  SLUICE_LANE_FN void multiply_keys(const KvTile<dims>& kv, PerLane<Scores>& scores) const {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (auto& c : scores[lane].c) SLUICE_UNROLL for (float& v : c) v = 0.0f;
    }
    if constexpr (kKeeps) {
      SLUICE_UNROLL for (int m = 0; m < kGroups; ++m) multiply_group(kv, m, scores);
    } else {  // one after the other: there are no registers to read queries ahead
      SLUICE_ROLLED for (int m = 0; m < kGroups; ++m) multiply_group(kv, m, scores);
    }
  }

  // 32 dimensions of all keys.
  SLUICE_LANE_FN void multiply_group(const KvTile<dims>& kv, int m, PerLane<Scores>& scores) const {
    PerLane<Words> rows[2][kQueryParts];
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int i = 0; i < 2 * kQueryParts; ++i) {
        rows[i % 2][i / 2][lane] = words_of(query(i % 2, i / 2, m, lane));
      }
    }
    SLUICE_UNROLL for (int n = 0; n < kKeys / 8; n += kChains) {
      PerLane<Words> keys[kChains];
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int i = 0; i < kChains; ++i) {
          keys[i][lane] = words_of(kv.key(n + i, m, lane));
        }
      }
      SLUICE_UNROLL for (int step = 0; step < 2 * kQueryParts; ++step) {
        const int s = step / kQueryParts, part = step % kQueryParts;
        PerLane<RowHalves> a;
        EACH_LANE(lane) {
          const auto &up = rows[0][part][lane].w, &down = rows[1][part][lane].w;
          a[lane] = {{up[2 * s], down[2 * s], up[2 * s + 1], down[2 * s + 1]}};
        }
        SLUICE_UNROLL for (int i = 0; i < kChains; ++i) {
          PerLane<ColumnHalves> b;
          EACH_LANE(lane) { b[lane] = {{keys[i][lane].w[2 * s], keys[i][lane].w[2 * s + 1]}}; }
          multiply_halves<bf16>(scores, n + i, a, b);
        }
      }
    }
  }

  // Scores to weights; what was added so far is scaled. Both queries of a lane at once, and sums in
  // four parts, so that few operations wait for each other.
  SLUICE_LANE_FN void soften(PerLane<Scores>& scores) {
    constexpr int kParts = 4;
    PerLane<float> peaks[2];
    EACH_LANE(lane) {
      const auto& c = scores[lane].c;
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        float most[kParts];
        SLUICE_UNROLL for (int k = 0; k < kParts; ++k) most[k] =
            more_of(c[k][2 * r], c[k][2 * r + 1]);
        SLUICE_UNROLL for (int n = kParts; n < kKeys / 8; ++n) {
          float& m = most[n % kParts];
          m = more_of(m, more_of(c[n][2 * r], c[n][2 * r + 1]));
        }
        const float of_all = more_of(more_of(most[0], most[1]), more_of(most[2], most[3]));
        peaks[r][lane] = more_of(peak_[r][lane], mul_rn(of_all, scale_[r][lane]));
      }
    }
    SLUICE_UNROLL for (auto& peak : peaks) {
      peak = fold_lanes<4>(peak, [](float a, float b) { return more_of(a, b); });
    }
    EACH_LANE(lane) {
      if (peaks[0][lane] != peak_[0][lane] || peaks[1][lane] != peak_[1][lane]) {
        SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
          const float rescale = power_of_two(sub_rn(peak_[r][lane], peaks[r][lane]));
          sum_[r][lane] = mul_rn(sum_[r][lane], rescale);
          SLUICE_UNROLL for (auto& c : values_[lane].c) {
            c[2 * r] = mul_rn(c[2 * r], rescale), c[2 * r + 1] = mul_rn(c[2 * r + 1], rescale);
          }
          peak_[r][lane] = peaks[r][lane];
        }
      }
      float sums[2][kParts] = {};
      const float bias[2] = {sub_rn(kWeightBits, peaks[0][lane]),
                             sub_rn(kWeightBits, peaks[1][lane])};
      SLUICE_UNROLL for (int n = 0; n < kKeys / 8; ++n) {
        SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
          float& c = scores[lane].c[n][i];
          c = power_of_two(fma_rn(c, scale_[i / 2][lane], bias[i / 2]));
          float& sum = sums[i / 2][n % 2 * 2 + i % 2];
          sum = add_rn(sum, c);
        }
      }
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        const float sum = add_rn(add_rn(sums[r][0], sums[r][1]), add_rn(sums[r][2], sums[r][3]));
        sum_[r][lane] = add_rn(sum_[r][lane], sum);
      }
    }
  }

  // Sixteen positions.
  SLUICE_LANE_FN void add_values(const KvTile<dims>& kv, int j, const PerLane<Scores>& weights) {
    PerLane<RowHalves> parts[kQueryParts];
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
        const float(&c)[4] = weights[lane].c[2 * j + i / 2];
        const TwoParts<bf16> two(c[i % 2 * 2], c[i % 2 * 2 + 1]);
        parts[0][lane].a[i] = two.high, parts[1][lane].a[i] = two.low;
      }
    }
    SLUICE_UNROLL for (int m = 0; m < dims / 64; ++m) {
      PerLane<Words> v[4];
      PerLane<ColumnHalves> columns[8];
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int k = 0; k < 4; ++k) v[k][lane] = words_of(kv.value(j, k, m, lane));
        SLUICE_UNROLL for (int i = 0; i < 16; ++i) {
          const int k = i % 2, n = i / 2;
          columns[n][lane].b[k] = pick_bytes(v[2 * k][lane].w[n / 2], v[2 * k + 1][lane].w[n / 2],
                                             n % 2 ? 0x7632u : 0x5410u);
        }
      }
      SLUICE_UNROLL for (const auto& part : parts) {
        SLUICE_UNROLL for (int n = 0; n < 8; ++n) {
          multiply_halves<bf16>(values_, 8 * m + n, part, columns[n]);
        }
      }
    }
  }

  PerLane<const uint16_t*> at_[2];
  PerLane<uint4> kept_[2][kKeeps ? kGroups * kQueryParts : 1];
  PerLane<float> scale_[2], peak_[2], sum_[2];  // sums of a lane's own positions
  PerLane<FloatSums<dims / 8>> values_;
};

}  // namespace sluice::backend::cuda
