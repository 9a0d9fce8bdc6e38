// The formulas of a gated DeltaNet's rows, in a kernel as in g++ (lanes.h): convolution, lengths,
// gates, the delta rule on four numbers, the gated norm. One place for them, so that a row has the
// same bits in narrow steps (delta_net_body.h) and in wide ones (wide_delta_body.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"
#include "backend/cuda/delta_net.h"
#include "backend/cuda/segment.h"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace sluice::backend::cuda {

// The rows of a sequence in this step: first .. first + n - 1.
struct DeltaRows {
  int first, n;
};

// By a warp, that asks for so many rows a lane before it looks at them.
template <int at_once = 4>
SLUICE_LANE_FN DeltaRows find_rows(const DeltaNetStep& p, int n_live, int sequence) {
  PerLane<int> counts;
  PerLane<uint32_t> last;  // 1 + its number; 0: there is none
  EACH_LANE(lane) {
    counts[lane] = 0, last[lane] = 0;
    SLUICE_ROLLED for (int first = lane; first < n_live; first += at_once * kWarp) {
      int32_t found[at_once];
      SLUICE_UNROLL for (int i = 0; i < at_once; ++i) {
        const int r = first + i * kWarp;
        found[i] = r < n_live ? word_past_l1(p.sequences + r) : -1;
      }
      SLUICE_UNROLL for (int i = 0; i < at_once; ++i) {
        if (found[i] != sequence) continue;
        ++counts[lane];
        last[lane] = static_cast<uint32_t>(first + i * kWarp + 1);
      }
    }
  }
  counts = sum_of_lanes(counts);
  last = most_of_lanes(last);
  const int n = from_lane(counts, 0);
  return {static_cast<int>(from_lane(last, 0)) - n, n};
}

// x / y of four numbers as div_rn has it, y at least 1: side by side, by the steps of the
// compiler's division, whose test for numbers out of the ordinary would stand between two of them.
SLUICE_LANE_FN float4 quotients(const float4& x, const float4& y) {
#if defined(__CUDACC__)
  const auto quotient = [](float a, float b) {
    float by;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(b));
    by = fma_rn(fma_rn(-b, by, 1.0f), by, by);
    const float out = mul_rn(a, by);
    return fma_rn(fma_rn(-b, out, a), by, out);
  };
  const float least = less_of(less_of(fabsf(x.x), fabsf(x.y)), less_of(fabsf(x.z), fabsf(x.w)));
  const float most = more_of(more_of(fabsf(x.x), fabsf(x.y)), more_of(fabsf(x.z), fabsf(x.w)));
  if (least >= 0x1p-60f &&
      more_of(most, more_of(more_of(y.x, y.y), more_of(y.z, y.w))) <= 0x1p60f) {
    return {quotient(x.x, y.x), quotient(x.y, y.y), quotient(x.z, y.z), quotient(x.w, y.w)};
  }
#endif
  return {div_rn(x.x, y.x), div_rn(x.y, y.y), div_rn(x.z, y.z), div_rn(x.w, y.w)};
}
SLUICE_LANE_FN float4 silu_of_four(const float4& x) {
  const auto divisor = [](float v) { return add_rn(1.0f, contract_exp(-v)); };
  return quotients(x, {divisor(x.x), divisor(x.y), divisor(x.z), divisor(x.w)});
}

SLUICE_LANE_FN float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

SLUICE_LANE_FN int64_t conv_cols_of(const DeltaNetStep& p) {
  return static_cast<int64_t>(2 * p.n_key_heads + p.n_value_heads) * p.head_dim;
}
// Of a row of the step's input: what the convolution takes, z, b and a.
SLUICE_LANE_FN int64_t in_cols_of(const DeltaNetStep& p) {
  return (conv_cols_of(p) + static_cast<int64_t>(p.n_value_heads) * (p.head_dim + 2) + 3) / 4 * 4;
}
SLUICE_LANE_FN int key_head_of(const DeltaNetStep& p, int head) {
  return p.by_remainder ? head % p.n_key_heads : head / (p.n_value_heads / p.n_key_heads);
}
// The first of the value heads that read a key head, and whether this is such a one.
SLUICE_LANE_FN int first_of_key_head(const DeltaNetStep& p, int key_head) {
  return p.by_remainder ? key_head : key_head * (p.n_value_heads / p.n_key_heads);
}
SLUICE_LANE_FN bool is_first_of_key_head(const DeltaNetStep& p, int head) {
  return p.by_remainder ? head < p.n_key_heads : head % (p.n_value_heads / p.n_key_heads) == 0;
}

SLUICE_LANE_FN void store_four(float* to, const float4& v) {
#if defined(__CUDACC__)
  *reinterpret_cast<float4*>(to) = v;
#else
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
#endif
}

SLUICE_LANE_FN float4 load_four(const float* from) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const float4*>(from);
#else
  return {from[0], from[1], from[2], from[3]};
#endif
}

// Of the convolution: a tap's weights of four columns, what such a tap adds, and what comes out.
SLUICE_LANE_FN float4 tap_weights(const DeltaNetStep& p, int column, int tap) {
  const float* const at = p.conv + static_cast<int64_t>(column) * p.n_taps + tap;
  return {word_constant(at), word_constant(at + p.n_taps), word_constant(at + 2 * p.n_taps),
          word_constant(at + 3 * p.n_taps)};
}
SLUICE_LANE_FN void add_tap(float4& sum, const float4& weights, const float4& x) {
  sum.x = fma_rn(weights.x, x.x, sum.x);
  sum.y = fma_rn(weights.y, x.y, sum.y);
  sum.z = fma_rn(weights.z, x.z, sum.z);
  sum.w = fma_rn(weights.w, x.w, sum.w);
}
SLUICE_LANE_FN float4 convolved_of(const float4& sum) { return silu_of_four(sum); }

// q (item 0) gets the length 1 / sqrt(head_dim), k (item 1) the length 1.
SLUICE_LANE_FN float delta_length(const DeltaNetStep& p, int item) {
  return item == 0 ? div_rn(1.0f, sqrt_rn(to_float(p.head_dim))) : 1.0f;
}
SLUICE_LANE_FN void set_length(const DeltaNetStep& p, float length, PerLane<float4>& x) {
  const PerLane<float> squares = segment_squares(x);
  EACH_LANE(lane) {
    const float by = div_rn(length, sqrt_rn(add_rn(squares[lane], p.eps)));
    const float4& v = x[lane];
    x[lane] = {mul_rn(v.x, by), mul_rn(v.y, by), mul_rn(v.z, by), mul_rn(v.w, by)};
  }
}

// Of a value head in a row; by a lane. What is of the head alone can be asked for before the wait.
struct DeltaGates {
  float decay, beta;
};
struct DeltaGateWeights {
  float time_bias, decay;

  SLUICE_LANE_FN DeltaGateWeights(const DeltaNetStep& p, int head)
      : time_bias(word_constant(p.time_bias + head)), decay(word_constant(p.decay + head)) {}
};
// Where a row's inputs of them stand.
struct DeltaGatePlaces {
  const float *a, *b;
};
SLUICE_LANE_FN DeltaGatePlaces delta_gate_places(const DeltaNetStep& p, int head, int row) {
  const int n_sharing = p.n_value_heads / p.n_key_heads;
  const int b = p.gates_by_key_head ? head / n_sharing * 2 * n_sharing + head % n_sharing : head;
  const int a = b + (p.gates_by_key_head ? n_sharing : p.n_value_heads);
  const float* const gates = p.in + row * in_cols_of(p) + conv_cols_of(p) +
                             static_cast<int64_t>(p.n_value_heads) * p.head_dim;
  return {gates + a, gates + b};
}
SLUICE_LANE_FN DeltaGates delta_gates(const DeltaGateWeights& of, const DeltaGatePlaces& places) {
  const float of_a = word_past_l1(places.a), of_b = word_past_l1(places.b);
  const float rate = softplus(add_rn(of_a, of.time_bias));
  return {contract_exp(mul_rn(of.decay, rate)), sigmoid(of_b)};
}
SLUICE_LANE_FN DeltaGates delta_gates(const DeltaNetStep& p, const DeltaGateWeights& of, int head,
                                      int row) {
  return delta_gates(of, delta_gate_places(p, head, row));
}
SLUICE_LANE_FN DeltaGates delta_gates(const DeltaNetStep& p, int head, int row) {
  return delta_gates(p, DeltaGateWeights(p, head), head, row);
}

// Of four numbers of a column of S: with those of k or q, and the two halves of a row's update.
SLUICE_LANE_FN float delta_dot(const float4& a, const float4& b) {
  return fma_rn(a.w, b.w, fma_rn(a.z, b.z, fma_rn(a.y, b.y, mul_rn(a.x, b.x))));
}
SLUICE_LANE_FN float4 delta_decayed(const float4& s, float decay) {
  return {mul_rn(decay, s.x), mul_rn(decay, s.y), mul_rn(decay, s.z), mul_rn(decay, s.w)};
}
SLUICE_LANE_FN float4 delta_entered(const float4& decayed, float e, const float4& k) {
  return {fma_rn(e, k.x, decayed.x), fma_rn(e, k.y, decayed.y), fma_rn(e, k.z, decayed.z),
          fma_rn(e, k.w, decayed.w)};
}
// e, of S^T k.
SLUICE_LANE_FN float delta_enters(float decay, float beta, float v, float sum) {
  return mul_rn(beta, fma_rn(-decay, sum, v));
}

// Four values of a lane, to f32 and int8.
SLUICE_LANE_FN void write_delta_row(const DeltaNetStep& p, int row, int head,
                                    const PerLane<float4>& v) {
  const int column = head * p.head_dim;
  EACH_LANE(lane) {
    if (4 * lane < p.head_dim) {
      store_four(
          p.out + static_cast<int64_t>(row) * p.n_value_heads * p.head_dim + column + 4 * lane,
          v[lane]);
    }
  }
  if (!p.out_int8) return;
  PerLane<Int8Place> places;
  EACH_LANE(lane) {
    const int at = column + 4 * lane;
    const int64_t block = static_cast<int64_t>(row) * p.out_int8.n_chunks * 8 + at / 32;
    places[lane] = {p.out_int8.q + 32 * block + at % 32, p.out_int8.d + block, p.out_int8.y + block,
                    4 * lane < p.head_dim};
  }
  quantize_segment(v, places);
}

// What a head's result is multiplied by: the norm's weights, which can be asked for before the
// wait, and SiLU(z). Nothing behind the head's end.
SLUICE_LANE_FN PerLane<float4> delta_norm_weights(const DeltaNetStep& p) {
  PerLane<float4> weights;
  EACH_LANE(lane) {
    weights[lane] = 4 * lane < p.head_dim ? load_constant(p.norm + 4 * lane) : float4{0, 0, 0, 0};
  }
  return weights;
}
SLUICE_LANE_FN PerLane<float4> delta_out_gate(const DeltaNetStep& p, int row, int head) {
  const float* const z = p.in + row * in_cols_of(p) + conv_cols_of(p) + head * p.head_dim;
  PerLane<float4> gate;
  EACH_LANE(lane) {
    gate[lane] = {0, 0, 0, 0};
    if (4 * lane < p.head_dim) {
      const float4 g = load_past_l1(z + 4 * lane);
      gate[lane] = silu_of_four(g);
    }
  }
  return gate;
}

// norm(o) SiLU(z), of o in a lane's four values, zeros behind the head's end.
SLUICE_LANE_FN void finish_delta_row(const DeltaNetStep& p, int row, int head,
                                     const PerLane<float4>& weights, const PerLane<float4>& gate,
                                     PerLane<float4>& v) {
  const PerLane<float> squares = segment_squares(v);
  EACH_LANE(lane) {
    const float mean = div_rn(squares[lane], to_float(p.head_dim));
    const float scale = div_rn(1.0f, sqrt_rn(add_rn(mean, p.eps)));
    const float4& g = gate[lane];
    if (4 * lane < p.head_dim) {
      v[lane] = normalized(v[lane], scale, weights[lane]);
      v[lane] = {mul_rn(v[lane].x, g.x), mul_rn(v[lane].y, g.y), mul_rn(v[lane].z, g.z),
                 mul_rn(v[lane].w, g.w)};
    }
  }
  write_delta_row(p, row, head, v);
}
SLUICE_LANE_FN void finish_delta_row(const DeltaNetStep& p, int row, int head, PerLane<float4>& v) {
  finish_delta_row(p, row, head, delta_norm_weights(p), delta_out_gate(p, row, head), v);
}

}  // namespace sluice::backend::cuda
