// See dot.h. One loop for all types; what differs is the form of the scales (unpack.h). Per chunk:
//   block forms   P = fma(d_b*D_b, float(I), P), I = sum w*q            N = fma(M_b, y_b, N)
//   super forms   P = fma(d_b, float(I), P), I = sum_g s_g * sum w*q    N = fma(float(m_b), y_b, N)
//   minima per 16                                      N = fma(d_b, float(sum_g m_g * sum q), N)
//   C = P, P + N, d*P or fma(d, P, -(dmin*N)); acc = acc + C.
// SPDX-License-Identifier: Apache-2.0
#include "quant/dot.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "quant/float8.h"
#include "quant/unpack.h"

namespace sluice::quant {
namespace {

// Every I is below 2^24, so its conversion to float is exact and the order of integers is free:
//
//   Q4_0       32*8*127   =  32,512      Q2_K    2*15*16*3*127   =    182,880 (minima 60,960)
//   Q4_1       32*15*127  =  60,960      Q3_K    2*32*16*4*127   =    520,192
//   Q5_0       32*16*127  =  65,024      Q4_K    63*32*15*127    =  3,840,480
//   Q5_1       32*31*127  = 125,984      Q5_K    63*32*31*127    =  7,936,992
//   Q8_0       32*128*127 = 520,192      Q6_K    2*128*16*32*127 = 16,646,144
//   IQ4_NL     32*127*127 = 516,128      IQ4_XS  32*32*127*127   = 16,516,096
//   MXFP4      32*12*127  =  48,768      2^24                    = 16,777,216

// sum w*q over a block of 32. Widened to int16 first: that is the form compilers know to turn into
// multiply-add of pairs.
int32_t block_dot(const int8_t* w, const int8_t* q) {
  int16_t w16[kBlock], q16[kBlock];
  for (int i = 0; i < kBlock; ++i) w16[i] = w[i];
  for (int i = 0; i < kBlock; ++i) q16[i] = q[i];
  int32_t sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += w16[i] * q16[i];
  return sum;
}

// s[0] * sum w*q of the first 16 + s[1] * sum w*q of the other 16; |w*q| <= 4064 in these types.
int32_t grouped_dot(const int32_t* s, const int8_t* w, const int8_t* q) {
  int16_t products[kBlock], scales[kBlock];
  for (int i = 0; i < kBlock; ++i) products[i] = static_cast<int16_t>(w[i] * q[i]);
  for (int i = 0; i < kBlock; ++i) scales[i] = static_cast<int16_t>(s[i / 16]);
  int32_t sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += scales[i] * products[i];
  return sum;
}

// m[0] * sum q of the first 16 + m[1] * sum q of the other 16
int32_t grouped_sum(const int32_t* m, const int8_t* q) {
  int16_t values[kBlock], mins[kBlock];
  for (int i = 0; i < kBlock; ++i) values[i] = q[i];
  for (int i = 0; i < kBlock; ++i) mins[i] = static_cast<int16_t>(m[i / 16]);
  int32_t sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += mins[i] * values[i];
  return sum;
}

template <Form form>
float chunk_dot(const Chunk& c, const int8_t* q, const float* d, const float* y) {
  float P = 0.0f;
  float N = 0.0f;
  for (int b = 0; b < c.n_blocks; ++b) {
    const int8_t* wb = c.w + kBlock * b;
    const int8_t* qb = q + kBlock * b;
    if constexpr (is_block_form(form)) {
      P = std::fma(d[b] * c.block_scale[b], static_cast<float>(block_dot(wb, qb)), P);
    } else if constexpr (form == Form::super_32 || form == Form::super_32_min) {
      P = std::fma(d[b], static_cast<float>(c.s[b] * block_dot(wb, qb)), P);
    } else {
      P = std::fma(d[b], static_cast<float>(grouped_dot(c.s + 2 * b, wb, qb)), P);
    }
    if constexpr (form == Form::block_min) {
      N = std::fma(c.block_min[b], y[b], N);
    } else if constexpr (form == Form::super_32_min) {
      N = std::fma(static_cast<float>(c.m[b]), y[b], N);
    } else if constexpr (form == Form::super_16_min) {
      N = std::fma(d[b], static_cast<float>(grouped_sum(c.m + 2 * b, qb)), N);
    }
  }
  switch (form) {
    case Form::block:
      return P;
    case Form::block_min:
      return P + N;
    case Form::super_32:
    case Form::super_16:
      return c.d * P;
    case Form::super_32_min:
    case Form::super_16_min:
      return std::fma(c.d, P, -(c.dmin * N));
  }
}

template <Form form>
void dot_rows_as(Type type, const std::byte* row, int64_t n, const ActivationView* a, int n_rows,
                 float* out) {
  CHECK(n >= 0 && n % (is_block_form(form) ? kBlock : kSuperBlock) == 0);
  std::fill_n(out, n_rows, 0.0f);
  Chunk chunk;
  for (int64_t i = 0; i < n; i += kSuperBlock) {
    const int64_t n_blocks = std::min<int64_t>(n - i, kSuperBlock) / kBlock;
    row = unpack_chunk(type, row, static_cast<int>(n_blocks), chunk);
    for (int r = 0; r < n_rows; ++r) {
      const int64_t b = i / kBlock;
      out[r] = out[r] + chunk_dot<form>(chunk, a[r].q + i, a[r].d + b, a[r].y + b);
    }
  }
}

template <Type type>
float dot_float_as(const std::byte* row, const float* x, int64_t n) {
  const auto* x_bytes = reinterpret_cast<const std::byte*>(x);
  Float8 chains;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    chains = fma(load_8_floats<type>(row, i), load_8_floats<Type::f32>(x_bytes, i), chains);
  }
  float chain[8];
  store(chains, chain);
  for (int c = 0; i < n; ++i, ++c) chain[c] = std::fma(load_float<type>(row, i), x[i], chain[c]);
  return sum_of_chains(chain);
}

}  // namespace

void dot_rows(Type type, const std::byte* row, int64_t n, const ActivationView* a, int n_rows,
              float* out) {
  switch (form_of(type)) {
    case Form::block:
      return dot_rows_as<Form::block>(type, row, n, a, n_rows, out);
    case Form::block_min:
      return dot_rows_as<Form::block_min>(type, row, n, a, n_rows, out);
    case Form::super_32:
      return dot_rows_as<Form::super_32>(type, row, n, a, n_rows, out);
    case Form::super_32_min:
      return dot_rows_as<Form::super_32_min>(type, row, n, a, n_rows, out);
    case Form::super_16:
      return dot_rows_as<Form::super_16>(type, row, n, a, n_rows, out);
    case Form::super_16_min:
      return dot_rows_as<Form::super_16_min>(type, row, n, a, n_rows, out);
  }
}

float dot(Type type, const std::byte* row, int64_t n, const ActivationView& a) {
  float out;
  dot_rows(type, row, n, &a, 1, &out);
  return out;
}

float dot_float(Type type, const std::byte* row, const float* x, int64_t n) {
  switch (type) {
    case Type::f32:
      return dot_float_as<Type::f32>(row, x, n);
    case Type::f16:
      return dot_float_as<Type::f16>(row, x, n);
    case Type::bf16:
      return dot_float_as<Type::bf16>(row, x, n);
    default:
      check_failed("dot_float: a float type", __FILE__, __LINE__);
  }
}

float dot_f32(const float* a, const float* b, int64_t n) {
  return dot_float_as<Type::f32>(reinterpret_cast<const std::byte*>(a), b, n);
}

}  // namespace sluice::quant
