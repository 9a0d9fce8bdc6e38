// Ranks of experts by their scores, and the weights of the best ones, in a kernel as in g++
// (lanes.h): by the last block of the router, or by gate_up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"
#include "backend/cuda/experts.h"

namespace sluice::backend::cuda {

// Order as integers: a total one, so that ranks are a permutation whatever the scores are.
SLUICE_LANE_FN uint32_t ordered(float score) {
  const uint32_t bits = bits_of(score);
  return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

SLUICE_LANE_FN float score_of(uint32_t key) {
  return as_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
}

// How a router weighs the experts that it chose.
struct Weighing {
  RouterScore kind;
  bool renormalize;
  int n_used;
  int n_experts;
};

// The weight of rank `lane`, by one warp. best: the score of rank `lane`; score_at(e): expert e's.
template <typename ScoreAt>
SLUICE_LANE_FN PerLane<float> weights_of(const Weighing& how, const PerLane<float>& best,
                                         const ScoreAt& score_at) {
  PerLane<float> weights;
  if (how.kind == RouterScore::softmax) {
    PerLane<float> peaks, sums;
    EACH_LANE(lane) {
      peaks[lane] = from_lane(best, 0);
      sums[lane] = 0.0f;
      SLUICE_UNROLL_4 for (int e = lane; e < how.n_experts; e += kWarp) {
        sums[lane] = add_rn(sums[lane], contract_exp(sub_rn(score_at(e), peaks[lane])));
      }
    }
    sums = sum_of_lanes(sums);
    EACH_LANE(lane) {
      weights[lane] = div_rn(contract_exp(sub_rn(best[lane], peaks[lane])), sums[lane]);
    }
  } else {
    EACH_LANE(lane) { weights[lane] = sigmoid(best[lane]); }
  }
  if (!how.renormalize) return weights;
  PerLane<float> totals{};
  SLUICE_ROLLED for (int k = 0; k < how.n_used; ++k) {
    EACH_LANE(lane) { totals[lane] = add_rn(totals[lane], from_lane(weights, k)); }
  }
  EACH_LANE(lane) { weights[lane] = div_rn(weights[lane], more_of(totals[lane], 0x1p-14f)); }
  return weights;
}
SLUICE_LANE_FN PerLane<float> expert_weights(const Weighing& how, const PerLane<float>& best,
                                             const float* scores) {
  return weights_of(how, best, [&](int e) { return scores[e]; });
}

// The n_used best of a row's experts, best first, ties to the lower one, by one warp: lane k gets
// rank k's expert and score. keys: [n_experts], ordered scores.
struct Best {
  PerLane<int> experts;
  PerLane<float> scores;
};
SLUICE_LANE_FN Best best_of_row(const uint32_t* keys, int n_experts, int n_used) {
  Best out{};
  // Of the rank before: what comes next is lower, or equal and behind it.
  uint32_t last_key = 0xffffffffu;
  int last = -1;
  SLUICE_ROLLED for (int k = 0; k < n_used; ++k) {
    PerLane<uint32_t> own_keys, firsts;
    PerLane<int> own;
    EACH_LANE(lane) {
      own_keys[lane] = 0, own[lane] = -1;
      SLUICE_UNROLL_4 for (int e = lane; e < n_experts; e += kWarp) {
        const uint32_t key = keys[e];
        const bool is_left = key < last_key || (key == last_key && e > last);
        if (is_left && (own[lane] < 0 || key > own_keys[lane])) own_keys[lane] = key, own[lane] = e;
      }
    }
    const PerLane<uint32_t> most = most_of_lanes(own_keys);
    EACH_LANE(lane) {
      const bool is_best = own[lane] >= 0 && own_keys[lane] == most[lane];
      firsts[lane] = is_best ? ~static_cast<uint32_t>(own[lane]) : 0u;
    }
    firsts = most_of_lanes(firsts);
    last_key = most[0], last = static_cast<int>(~firsts[0]);
    EACH_LANE(lane) {
      if (lane == k) out.experts[lane] = last, out.scores[lane] = score_of(last_key);
    }
  }
  return out;
}

// An ordered score that is not 0.
SLUICE_LANE_FN uint32_t key_of(float score) {
  const uint32_t key = ordered(score);
  return key > 1u ? key : 1u;
}

// The same of up to kMostRanked experts, whose keys stand in registers: a lane has those of experts
// lane, lane + 32, ...; 0 where there is none.
struct OwnKeys {
  static constexpr int kMost = kMostRanked / kWarp;
  uint32_t of[kMost];
};
SLUICE_LANE_FN Best best_of_keys(PerLane<OwnKeys>& keys, int n_used) {
  Best out{};
  SLUICE_ROLLED for (int k = 0; k < n_used; ++k) {
    PerLane<uint32_t> own, firsts;
    PerLane<int> experts;
    PerLane<bool> is_best;
    EACH_LANE(lane) {
      own[lane] = keys[lane].of[0], experts[lane] = lane;
      SLUICE_UNROLL for (int j = 1; j < OwnKeys::kMost; ++j) {
        const bool is_more = keys[lane].of[j] > own[lane];
        own[lane] = is_more ? keys[lane].of[j] : own[lane];
        experts[lane] = is_more ? kWarp * j + lane : experts[lane];
      }
    }
    const PerLane<uint32_t> most = most_of_lanes(own);
    EACH_LANE(lane) {
      is_best[lane] = own[lane] == most[lane];
      firsts[lane] = is_best[lane] ? ~static_cast<uint32_t>(experts[lane]) : 0u;
    }
    const uint32_t lanes = lanes_that(is_best);
    int best;
    if ((lanes & (lanes - 1)) == 0) {
      best = from_lane(experts, first_bit(lanes));
    } else {  // a tie
      firsts = most_of_lanes(firsts);
      best = static_cast<int>(~firsts[0]);
    }
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int j = 0; j < OwnKeys::kMost; ++j) {
        if (kWarp * j + lane == best) keys[lane].of[j] = 0u;
      }
      if (lane == k) out.experts[lane] = best, out.scores[lane] = score_of(most[lane]);
    }
  }
  return out;
}

// Ranks of up to `most` experts of a row (128 or 256), ties to the lower one, by eight warps: two
// lanes or one to an expert, who count the better ones. (Taking the best eight times, by one warp,
// cost 0.1 us for each.) One of these to a warp.
template <int most>
class Ranks {
  static constexpr int kLanes = 8 * kWarp / most;  // of an expert
  static_assert(kLanes == 1 || kLanes == 2);

 public:
  // scores: of expert 32 warp + lane; `keys` in shared memory, 16-aligned. A barrier is to follow.
  SLUICE_LANE_FN Ranks(const PerLane<float>& scores, int n_experts, uint32_t* keys, int warp)
      : keys_(keys), warp_(warp) {
    EACH_LANE(lane) {
      const int i = kWarp * warp + lane;
      // Ordered scores are 1 at least, so that one less is lower.
      if (i < most) keys[i] = i < n_experts ? key_of(scores[lane]) : 0u;
    }
  }

  static SLUICE_LANE_FN int expert(int warp, int lane) { return (kWarp * warp + lane) / kLanes; }
  static SLUICE_LANE_FN bool is_first_lane(int lane) { return lane % kLanes == 0; }

  // The rank of its expert, in all of its lanes.
  SLUICE_LANE_FN PerLane<int> rank() const {
    constexpr int kWords = most / 4;
    PerLane<int> n;
    EACH_LANE(lane) {
      const int e = expert(warp_, lane);
      const uint32_t own = keys_[e];
      n[lane] = 0;
      SLUICE_UNROLL_4 for (int w = lane % kLanes; w < kWords; w += kLanes) {
        const uint4 other = four(w);
        // A lower expert is better if its key is not less; the expert's own four: see below.
        const uint32_t bound = 4 * w + 3 < e ? own - 1 : own;
        n[lane] += (other.x > bound) + (other.y > bound) + (other.z > bound) + (other.w > bound);
      }
    }
    n = fold_lanes<kLanes>(n, [](int a, int b) { return a + b; });
    EACH_LANE(lane) {
      const int e = expert(warp_, lane);
      const uint32_t own = keys_[e];
      const uint4 near = four(e / 4);
      n[lane] += (near.x == own && e % 4 > 0) + (near.y == own && e % 4 > 1) +
                 (near.z == own && e % 4 > 2);
      if (own == 0) n[lane] = most;  // no expert
    }
    return n;
  }
  SLUICE_LANE_FN float score(int lane) const { return score_of(keys_[expert(warp_, lane)]); }

 private:
  SLUICE_LANE_FN uint4 four(int word) const {
    return *reinterpret_cast<const uint4*>(keys_ + 4 * word);
  }

  const uint32_t* keys_;
  int warp_;
};

}  // namespace sluice::backend::cuda
