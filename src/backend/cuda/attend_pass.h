// Attention's pass over positions, sixteen positions and eight query heads at a time, by one warp:
// scores, an online softmax, and the weighted sum of values. In a kernel as in g++ (lanes.h); part
// of attend.cu.
//
// Both products are tensor cores' (half_product.h): the upper eight rows are the high parts of the
// heads' queries (then of their weights), the lower eight what is left of them. Which dimension or
// position is which number of a product is free, and chosen so that a lane reads 16 bytes at a time
// as they stand in the cache, and so that it weighs the values of the positions it scored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend_parts.h"
#include "backend/cuda/half_product.h"

namespace sluice::backend::cuda {

constexpr int kHeadsAtOnce = 8;
constexpr int kPositionsAtOnce = 16;

// Sixteen keys and values of f16 or bf16 in shared memory. Rows are so far apart that the lanes of
// a load use other banks: lane (g, t) reads 16 bytes of the keys of positions g and g + 8, from 64
// m + 16 t on, and of the values of positions 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, from 128 m + 16 g
// on.
template <int dims>
struct KeysAndValues {
  static constexpr int kKeyStride = 2 * dims + 64, kValueStride = 2 * dims + 16;
  uint8_t keys[kPositionsAtOnce][kKeyStride];
  uint8_t values[kPositionsAtOnce][kValueStride];

  SLUICE_LANE_FN const uint4& key(int k, int m, int lane) const {
    return *reinterpret_cast<const uint4*>(keys[lane / 4 + 8 * k] + 64 * m + lane % 4 * 16);
  }
  SLUICE_LANE_FN const uint4& value(int k, int m, int lane) const {
    return *reinterpret_cast<const uint4*>(values[value_position(k, lane)] + 128 * m +
                                           lane / 4 * 16);
  }
  static SLUICE_LANE_FN int value_position(int k, int lane) {
    return lane % 4 * 2 + k % 2 + k / 2 * 8;
  }
};

// What stands between warps: sums of values of eight heads, their peaks and their sums. The pieces
// of four values are in such places that lanes which write together use other banks.
template <int dims>
SLUICE_LANE_FN int merged_at(int head, int column) {
  const int t = column / 16 % 4;
  return head * dims + (column ^ ((t >> 1) * 4) ^ (head % 2 * 8));
}

// The queries as the products read them, in shared memory.
template <int dims, bool bf16>
struct Queries {
  static constexpr int kParts = bf16 ? 2 : 1;  // f16: two numbers to a float; bf16: three
  uint4 words[dims / 16][kParts][kWarp];
  float scale[kHeadsAtOnce];  // f16: a power of two that is taken off

  // Head h, by one warp.
  SLUICE_LANE_FN void set(const float* head, float factor, int h) {
    PerLane<float> up;
    EACH_LANE(lane) { up[lane] = 1.0f; }
    if constexpr (!bf16) {
      PerLane<uint32_t> peaks;
      EACH_LANE(lane) {
        peaks[lane] = 0;
        SLUICE_UNROLL for (int i = lane; i < dims; i += kWarp) {
          const uint32_t size = bits_of(mul_rn(head[i], factor)) & 0x7fffffffu;
          peaks[lane] = size > peaks[lane] ? size : peaks[lane];
        }
      }
      peaks = most_of_lanes(peaks);
      EACH_LANE(lane) {
        const uint32_t e = peaks[lane] >> 23, power = e < 1 ? 1 : e > 253 ? 253 : e;
        up[lane] = as_float((254 - power) << 23);
        if (lane == 0) scale[h] = as_float(power << 23);
      }
    }
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int four = lane; four < dims / 4; four += kWarp) {
        float x[4];
        SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
          x[i] = mul_rn(mul_rn(head[4 * four + i], factor), up[lane]);
        }
        const SplitPair<bf16> first(x[0], x[1]), second(x[2], x[3]);
        const int m = four / 8, t = four % 8 / 2, s = four % 2;
        uint4(&to)[kParts][kWarp] = words[2 * m + s];
        to[0][4 * h + t] = {first.high, first.low, second.high, second.low};
        if constexpr (bf16) to[1][4 * h + t] = {first.rest, 0, second.rest, 0};
      }
    }
  }
};

template <int dims, bool bf16>
class AttendPass {
 public:
  // Before the first positions. (Not a constructor: nothing must stand in registers before.)
  SLUICE_LANE_FN void begin() {
    EACH_LANE(lane) {
      peak_[lane] = kNoPeak, sum_[lane] = 0.0f;
      SLUICE_UNROLL for (auto& c : values_[lane].c) SLUICE_UNROLL for (float& v : c) v = 0.0f;
    }
  }

  // Sixteen positions, of which the first n exist: 1 at least. The others hold numbers.
  SLUICE_LANE_FN void add(const Queries<dims, bf16>& queries, const KeysAndValues<dims>& kv,
                          int n) {
    PerLane<RowHalves> weights[Queries<dims, bf16>::kParts];
    weigh(queries, kv, n, weights);
    SLUICE_UNROLL for (int m = 0; m < dims / 64; ++m) {
      PerLane<Words> v[4];
      SLUICE_UNROLL for (int k = 0; k < 4; ++k) {
        EACH_LANE(lane) { v[k][lane] = words_of(kv.value(k, m, lane)); }
      }
      SLUICE_UNROLL for (int j = 0; j < 8; ++j) {
        PerLane<ColumnHalves> columns;
        const uint32_t which = j % 2 ? 0x7632u : 0x5410u;
        EACH_LANE(lane) {
          SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
            columns[lane].b[k] =
                pick_bytes(v[2 * k][lane].w[j / 2], v[2 * k + 1][lane].w[j / 2], which);
          }
        }
        SLUICE_UNROLL for (const auto& part : weights) {
          multiply_halves<bf16>(values_, 8 * m + j, part, columns);
        }
      }
    }
  }

  // What the warp has.
  SLUICE_LANE_FN void write(float* values, float* peaks, float* sums) const {
    const PerLane<float> sum = fold_lanes<4>(sum_, [](float a, float b) { return add_rn(a, b); });
    EACH_LANE(lane) {
      const int g = lane / 4, t = lane % 4;
      SLUICE_UNROLL for (int m = 0; m < dims / 64; ++m) {
        SLUICE_UNROLL for (int k = 0; k < 16; k += 4) {
          const auto value = [&](int j) {
            const float(&c)[4] = values_[lane].c[8 * m + j % 8];
            return mul_rn(add_rn(c[j / 8], c[2 + j / 8]), 1.0f / kWeightScale);
          };
          *reinterpret_cast<float4*>(values + merged_at<dims>(g, 64 * m + 16 * t + k)) = {
              value(k), value(k + 1), value(k + 2), value(k + 3)};
        }
      }
      if (t == 0) peaks[g] = peak_[lane], sums[g] = sum[lane];
    }
  }

 private:
  // Of weights, which are 1 at most: so that small ones of f16 are precise too.
  static constexpr float kWeightScale = bf16 ? 1.0f : 32768.0f;
  struct Words {
    uint32_t w[4];
  };
  struct Four {
    float of[4];
  };
  static SLUICE_LANE_FN Words words_of(const uint4& v) { return {{v.x, v.y, v.z, v.w}}; }

  SLUICE_LANE_FN void weigh(const Queries<dims, bf16>& queries, const KeysAndValues<dims>& kv,
                            int n, PerLane<RowHalves> (&weights)[Queries<dims, bf16>::kParts]) {
    PerLane<FloatSums<4>> dots;  // two chains each
    EACH_LANE(lane) {
      SLUICE_UNROLL for (auto& c : dots[lane].c) SLUICE_UNROLL for (float& v : c) v = 0.0f;
    }
    SLUICE_UNROLL for (int m = 0; m < dims / 32; ++m) {
      PerLane<Words> key[2];
      SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
        EACH_LANE(lane) { key[k][lane] = words_of(kv.key(k, m, lane)); }
      }
      SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
        SLUICE_UNROLL for (int part = 0; part < Queries<dims, bf16>::kParts; ++part) {
          PerLane<RowHalves> rows;
          EACH_LANE(lane) {
            const Words q = words_of(queries.words[2 * m + s][part][lane]);
            rows[lane] = {{q.w[0], q.w[1], q.w[2], q.w[3]}};
          }
          SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
            PerLane<ColumnHalves> columns;
            EACH_LANE(lane) {
              columns[lane] = {{key[k][lane].w[2 * s], key[k][lane].w[2 * s + 1]}};
            }
            multiply_halves<bf16>(dots, 2 * k + s, rows, columns);
          }
        }
      }
    }
    PerLane<Four> scores;
    PerLane<float> peaks;
    EACH_LANE(lane) {
      const auto& c = dots[lane].c;
      const float scale = bf16 ? 1.0f : queries.scale[lane / 4];
      peaks[lane] = peak_[lane];
      SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
        const int k = i / 2 * 2, j = i % 2;
        const float dot =
            add_rn(add_rn(c[k][j], c[k + 1][j]), add_rn(c[k][2 + j], c[k + 1][2 + j]));
        scores[lane].of[i] =
            KeysAndValues<dims>::value_position(i, lane) < n ? mul_rn(dot, scale) : kNoPeak;
        peaks[lane] = more_of(peaks[lane], scores[lane].of[i]);
      }
    }
    soften(scores, fold_lanes<4>(peaks, [](float a, float b) { return more_of(a, b); }), weights);
  }

  // Scores to weights; what was added so far is scaled.
  SLUICE_LANE_FN void soften(const PerLane<Four>& scores, const PerLane<float>& peaks,
                             PerLane<RowHalves> (&weights)[Queries<dims, bf16>::kParts]) {
    EACH_LANE(lane) {
      float p[4];
      SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
        const float score = scores[lane].of[i];
        p[i] = score == kNoPeak ? 0.0f : contract_exp(sub_rn(score, peaks[lane]));
      }
      const float more = add_rn(add_rn(p[0], p[1]), add_rn(p[2], p[3]));
      SLUICE_UNROLL for (float& v : p) v = mul_rn(v, kWeightScale);
      const SplitPair<bf16> first(p[0], p[1]), second(p[2], p[3]);
      weights[0][lane] = {{first.high, first.low, second.high, second.low}};
      if constexpr (bf16) weights[1][lane] = {{first.rest, 0, second.rest, 0}};
      if (peaks[lane] != peak_[lane]) {
        const float rescale = contract_exp(sub_rn(peak_[lane], peaks[lane]));
        sum_[lane] = mul_rn(sum_[lane], rescale);
        SLUICE_UNROLL for (auto& c : values_[lane].c) {
          SLUICE_UNROLL for (float& v : c) v = mul_rn(v, rescale);
        }
        peak_[lane] = peaks[lane];
      }
      sum_[lane] = add_rn(sum_[lane], more);
    }
  }

  PerLane<float> peak_, sum_;  // of head g; a lane's own positions
  PerLane<FloatSums<dims / 8>> values_;
};

}  // namespace sluice::backend::cuda
