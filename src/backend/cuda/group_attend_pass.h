// Attention of 64 queries over tiles of keys and values, by a group of four warps
// (group_product.h): what one of its warps does for its sixteen. The same formulas as
// wide_attend_pass.h: queries and weights are two halves each, exponentials are powers of two. Here
// the scores of a tile are made while the values of the tile before are added, and while its own
// are softened values go on. In a kernel as in g++ (lanes.h); part of group_attend.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/group_product.h"
#include "backend/cuda/wide_attend_pass.h"

namespace sluice::backend::cuda {

// Keys or values: a line is 64 dimensions of one position.
template <int dims, int keys>
struct GroupTile {
  alignas(kTileAlignment) uint8_t bytes[dims / 64][keys * kLineBytes];

  SLUICE_LANE_FN GroupColumns columns() const { return {bytes[0], keys * kLineBytes}; }
  // Where 16 bytes of a row stand. at: of the row's bytes, a multiple of 16.
  static SLUICE_LANE_FN int offset(int key, int at) {
    return at / kLineBytes * (keys * kLineBytes) + byte_of_tile(key, at % kLineBytes);
  }
};

// Columns of a block of 32 of a result: 8 i + {2 t, 2 t + 1}.
struct EightColumns {
  float v[8];
};

// A block of 32 columns of four lanes as int8 (the contract's part A). q: where the block goes.
SLUICE_LANE_FN void quantize_block(const PerLane<EightColumns>& values,
                                   const PerLane<Int8Place>& to) {
  const auto most = [](uint32_t a, uint32_t b) { return a > b ? a : b; };
  PerLane<uint32_t> peaks;
  PerLane<float> steps;
  PerLane<int> sums;
  EACH_LANE(lane) {
    peaks[lane] = 0;
    SLUICE_UNROLL for (const float v : values[lane].v) {
      peaks[lane] = most(peaks[lane], bits_of(v) & 0x7fffffffu);
    }
  }
  peaks = fold_lanes<4>(peaks, most);
  EACH_LANE(lane) {
    const float peak = as_float(peaks[lane]);
    const bool is_zero = peak < 0x1p-100f;
    const float scale = is_zero ? 0.0f : div_rn(127.0f, peak);
    steps[lane] = is_zero ? 0.0f : mul_rn(peak, 1.0f / 127.0f);
    sums[lane] = 0;
    SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
      const int q[2] = {to_nearest(mul_rn(values[lane].v[2 * i], scale)),
                        to_nearest(mul_rn(values[lane].v[2 * i + 1], scale))};
      sums[lane] += q[0] + q[1];
      if (to[lane].exists) {
        *reinterpret_cast<uint16_t*>(to[lane].q + 8 * i + lane % 4 * 2) =
            static_cast<uint16_t>((q[0] & 255) | (q[1] & 255) << 8);
      }
    }
  }
  sums = fold_lanes<4>(sums, [](int a, int b) { return a + b; });
  EACH_LANE(lane) {
    if (to[lane].exists && lane % 4 == 0) {
      *to[lane].d = steps[lane];
      *to[lane].y = mul_rn(steps[lane], to_float(sums[lane]));
    }
  }
}

// Of the two queries of a lane, g and g + 8 (r is 0 or 1). A tile goes through score(), soften(),
// settle() and add_values(), in this order; score() of the next may stand before add_values() of
// this one, and soften() of the next behind it.
template <int dims, bool bf16, int keys>
class GroupPass {
 public:
  using Tile = GroupTile<dims, keys>;

  // queries: [2], each [kQueryParts][dims] halves, written for groups.
  SLUICE_LANE_FN void begin(const PerLane<const uint16_t*> (&queries)[2],
                            const PerLane<float> (&scales)[2]) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        scale_[r][lane] = scales[r][lane], peak_[r][lane] = kNoPeak, sum_[r][lane] = 0.0f;
        SLUICE_UNROLL for (int part = 0; part < kQueryParts; ++part) {
          SLUICE_UNROLL for (int m = 0; m < dims / 32; ++m) {
            const uint4 words =
                load_16_past_l1(queries[r][lane] + part * dims + 32 * m + lane % 4 * 8);
            uint32_t(&even)[4] = queries_[part][2 * m][lane].a;
            uint32_t(&odd)[4] = queries_[part][2 * m + 1][lane].a;
            even[r] = words.x, even[r + 2] = words.y;
            odd[r] = words.z, odd[r + 2] = words.w;
          }
        }
      }
      SLUICE_UNROLL for (auto& c : values_[lane].c) SLUICE_UNROLL for (float& v : c) v = 0.0f;
    }
  }

  // Starts the products of queries and keys: a batch.
  SLUICE_LANE_FN void score(const Tile& tile) {
    const GroupColumns columns = tile.columns();
    begin_products();
    SLUICE_UNROLL for (int s = 0; s < dims / 16; ++s) {
      const GroupColumns own = columns.behind(s / 4 * (keys * kLineBytes) + s % 4 * 32);
      SLUICE_UNROLL for (int part = 0; part < kQueryParts; ++part) {
        multiply_group<bf16, true>(scores_, queries_[part][s], own, s + part > 0);
      }
    }
    end_batch();
  }

  // Scores, which are there, to weights. Queries see the keys before limits[r], which is asked
  // where `masks`: else they see all. first: the tile's first key of its sequence.
  SLUICE_LANE_FN void soften(int first, bool masks, const PerLane<int> (&limits)[2]) {
    hold(scores_);
    if (masks) mask(first, limits);
    find_peaks();
    PerLane<float> sums[2][kChains] = {};
    SLUICE_UNROLL for (int n = 0; n < keys / 8; ++n) weigh(n, sums);
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        const float sum = add_rn(add_rn(sums[r][0][lane], sums[r][1][lane]),
                                 add_rn(sums[r][2][lane], sums[r][3][lane]));
        sum_[r][lane] = add_rn(mul_rn(sum_[r][lane], rescale_[r][lane]), sum);
      }
    }
  }

  // What soften() left is what add_values() takes; sums of values, which are there, are scaled.
  SLUICE_LANE_FN void settle() {
    hold(values_);
    SLUICE_UNROLL for (auto& w : weights_) SLUICE_UNROLL for (auto& part : w) hold(part);
    EACH_LANE(lane) {
      if (rescale_[0][lane] != 1.0f || rescale_[1][lane] != 1.0f) {
        SLUICE_UNROLL for (auto& c : values_[lane].c) {
          SLUICE_UNROLL for (int i = 0; i < 4; ++i) c[i] = mul_rn(c[i], rescale_[i / 2][lane]);
        }
      }
    }
    SLUICE_UNROLL for (int n = 0; n < keys / 8; ++n) split(n);
  }

  // Starts the products of weights and values: a batch. Values that no query sees are numbers.
  SLUICE_LANE_FN void add_values(const Tile& tile) {
    const GroupColumns columns = tile.columns();
    begin_products();
    SLUICE_UNROLL for (int j = 0; j < keys / 16; ++j) {
      const GroupColumns own = columns.behind(16 * j * kLineBytes);
      SLUICE_UNROLL for (int part = 0; part < kWeightParts; ++part) {
        multiply_group<bf16, false>(values_, weights_[j][part], own, true);
      }
    }
    end_batch();
  }

  // Behind the last await_batches<0>().
  SLUICE_LANE_FN void finish() { hold(values_); }

  // The results, 32 columns at a time: to(r, column, values) for what a lane has.
  template <typename To>
  SLUICE_LANE_FN void end(const To& to) const {
    SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
      const PerLane<float> sums =
          fold_lanes<4>(sum_[r], [](float a, float b) { return add_rn(a, b); });
      SLUICE_UNROLL for (int m = 0; m < dims / 32; ++m) {
        PerLane<EightColumns> out;
        EACH_LANE(lane) {
          SLUICE_UNROLL for (int j = 0; j < 8; ++j) {
            const float sum = sums[lane];  // 0: a query that saw nothing
            out[lane].v[j] =
                sum > 0.0f ? div_rn(values_[lane].c[4 * m + j / 2][2 * r + j % 2], sum) : 0.0f;
          }
        }
        to(r, 32 * m, out);
      }
    }
  }

 private:
  static constexpr int kChains = 4, kWeightParts = 2;

  SLUICE_LANE_FN void mask(int first, const PerLane<int> (&limits)[2]) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int n = 0; n < keys / 8; ++n) {
        SLUICE_UNROLL for (int i = 0; i < 4; ++i) {
          const bool is_seen = first + 8 * n + lane % 4 * 2 + i % 2 < limits[i / 2][lane];
          float& score = scores_[lane].c[n][i];
          score = is_seen ? score : as_float(0xff800000u);  // minus infinity: counts by 0
        }
      }
    }
  }

  SLUICE_LANE_FN void find_peaks() {
    PerLane<float> peaks[2];
    EACH_LANE(lane) {
      const auto& c = scores_[lane].c;
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        float most[kChains];
        SLUICE_UNROLL for (int k = 0; k < kChains; ++k) most[k] =
            more_of(c[k][2 * r], c[k][2 * r + 1]);
        SLUICE_UNROLL for (int n = kChains; n < keys / 8; ++n) {
          float& m = most[n % kChains];
          m = more_of(m, more_of(c[n][2 * r], c[n][2 * r + 1]));
        }
        const float of_all = more_of(more_of(most[0], most[1]), more_of(most[2], most[3]));
        peaks[r][lane] = more_of(peak_[r][lane], mul_rn(of_all, scale_[r][lane]));
      }
    }
    SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
      peaks[r] = fold_lanes<4>(peaks[r], [](float a, float b) { return more_of(a, b); });
      EACH_LANE(lane) {
        rescale_[r][lane] = power_of_two(sub_rn(peak_[r][lane], peaks[r][lane]));
        peak_[r][lane] = peaks[r][lane];
      }
    }
  }

  // Eight positions.
  SLUICE_LANE_FN void weigh(int n, PerLane<float> (&sums)[2][kChains]) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        const float bias = sub_rn(kWeightBits, peak_[r][lane]);
        float* const w = scores_[lane].c[n] + 2 * r;
        SLUICE_UNROLL for (int i = 0; i < 2; ++i) {
          w[i] = power_of_two(fma_rn(w[i], scale_[r][lane], bias));
        }
        SLUICE_UNROLL for (int i = 0; i < 2; ++i) {
          float& sum = sums[r][n % 2 * 2 + i][lane];
          sum = add_rn(sum, w[i]);
        }
      }
    }
  }

  // Weights of eight positions in parts.
  SLUICE_LANE_FN void split(int n) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int r = 0; r < 2; ++r) {
        const float(&c)[4] = scores_[lane].c[n];
        const TwoParts<bf16> two(c[2 * r], c[2 * r + 1]);
        weights_[n / 2][0][lane].a[n % 2 * 2 + r] = two.high;
        weights_[n / 2][1][lane].a[n % 2 * 2 + r] = two.low;
      }
    }
  }

  PerLane<RowHalves> queries_[kQueryParts][dims / 16];
  PerLane<FloatSums<keys / 8>> scores_;
  PerLane<RowHalves> weights_[keys / 16][kWeightParts];
  PerLane<float> scale_[2], peak_[2], sum_[2], rescale_[2];  // sums of a lane's own positions
  PerLane<FloatSums<dims / 8>> values_;
};

}  // namespace sluice::backend::cuda
