// See delta_chunks.h. With g_t the product of the decays up to t, and A_ts = g_t / g_s k_t . k_s:
//   u_t = b_t (v_t - g_t S k_t - sum_{s<t} A_ts u_s)                 a triangular solve
//   o_t = g_t S q_t + sum_{s<=t} g_t / g_s (q_t . k_s) u_s;  S = g_n S + sum_s g_n / g_s u_s k_s^T
// SPDX-License-Identifier: Apache-2.0
#include "bench/delta_chunks.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::backend::cpu {
namespace {

constexpr int kDim = 128;
constexpr int kMostTokens = 64;

// A matrix whose rows and columns lie so far apart.
struct Factor {
  const float* data;
  int64_t row, column;
};

// c (+)= a b, m rows by 64 columns.
template <int m>
void multiply_tile(int n, const Factor& a, const float* b, int b_row, float* c, bool adds) {
  __m512 sums[m][4];
  for (int r = 0; r < m; ++r) {
    for (int v = 0; v < 4; ++v) {
      sums[r][v] = adds ? _mm512_loadu_ps(c + r * kDim + 16 * v) : _mm512_setzero_ps();
    }
  }
  for (int i = 0; i < n; ++i) {
    __m512 row[4];
    for (int v = 0; v < 4; ++v) row[v] = _mm512_loadu_ps(b + i * b_row + 16 * v);
    for (int r = 0; r < m; ++r) {
      const __m512 x = _mm512_set1_ps(a.data[r * a.row + i * a.column]);
      for (int v = 0; v < 4; ++v) sums[r][v] = _mm512_fmadd_ps(x, row[v], sums[r][v]);
    }
  }
  for (int r = 0; r < m; ++r) {
    for (int v = 0; v < 4; ++v) _mm512_storeu_ps(c + r * kDim + 16 * v, sums[r][v]);
  }
}

// Rows of c lie kDim apart.
void multiply(int n_rows, int n_cols, int n, Factor a, const float* b, int b_row, float* c,
              bool adds) {
  for (int64_t col = 0; col < n_cols; col += 64) {
    int64_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
      const Factor some{a.data + r * a.row, a.row, a.column};
      multiply_tile<4>(n, some, b + col, b_row, c + r * kDim + col, adds);
    }
    for (int i = 0; i < n_rows % 4; ++i, ++r) {
      const Factor one{a.data + r * a.row, a.row, a.column};
      multiply_tile<1>(n, one, b + col, b_row, c + r * kDim + col, adds);
    }
  }
}

using Rows = float[kMostTokens][kDim];

struct Chunks {
  float state[kDim][kDim];  // dimensions of keys first, so that rows of values stand together
  Rows k, q, u, o, aged;
  float keys[kDim][kMostTokens];
  Rows a, b;  // 64 columns count
  float log_decay[kMostTokens];

  void load(const DeltaToken* tokens, int n) {
    float sum = 0;
    for (int t = 0; t < n; ++t) {
      log_decay[t] = sum += std::log(tokens[t].decay);
      std::copy_n(tokens[t].k, kDim, k[t]);
      std::copy_n(tokens[t].q, kDim, q[t]);
      for (int i = 0; i < kDim; ++i) keys[i][t] = k[t][i];
    }
  }

  // What tokens of the chunk do to each other.
  void mix(const DeltaToken* tokens, int n) {
    for (int t = 0; t < n; t += 4) {  // no further than the diagonal, in tiles
      const int rows = std::min(4, n - t);
      multiply(rows, 64, kDim, {k[t], kDim, 1}, keys[0], kMostTokens, a[t], false);
      multiply(rows, 64, kDim, {q[t], kDim, 1}, keys[0], kMostTokens, b[t], false);
    }
    for (int t = 0; t < n; ++t) {
      for (int s = 0; s <= t; ++s) {
        const float aged_by = std::exp(log_decay[t] - log_decay[s]);
        a[t][s] *= aged_by * tokens[t].beta;
        b[t][s] *= aged_by;
      }
      std::fill(b[t] + t + 1, b[t] + kMostTokens, 0.0f);
    }
  }

  // u, eight rows at a time: by all before as a product, then among themselves.
  void solve(int n) {
    alignas(64) float before[8][kDim];
    for (int first = 0; first < n; first += 8) {
      const int rows = std::min(8, n - first);
      if (first > 0) {
        multiply(rows, kDim, first, {a[first], kDim, 1}, u[0], kDim, before[0], false);
        for (int t = 0; t < rows; ++t) {
          for (int j = 0; j < kDim; ++j) u[first + t][j] -= before[t][j];
        }
      }
      for (int t = first; t < first + rows; ++t) {
        for (int s = first; s < t; ++s) {
          for (int j = 0; j < kDim; ++j) u[t][j] = std::fma(-a[t][s], u[s][j], u[t][j]);
        }
      }
    }
  }

  void run(const DeltaToken* tokens, int n) {
    load(tokens, n);
    mix(tokens, n);
    multiply(n, kDim, kDim, {k[0], kDim, 1}, state[0], kDim, u[0], false);
    multiply(n, kDim, kDim, {q[0], kDim, 1}, state[0], kDim, o[0], false);
    for (int t = 0; t < n; ++t) {
      const float g = std::exp(log_decay[t]);
      for (int j = 0; j < kDim; ++j) {
        u[t][j] = tokens[t].beta * (tokens[t].v[j] - g * u[t][j]);
        o[t][j] *= g;
      }
    }
    solve(n);
    for (int first = 0; first < n; first += 8) {
      const int rows = std::min(8, n - first), seen = std::min(n, first + 8);
      multiply(rows, kDim, seen, {b[first], kDim, 1}, u[0], kDim, o[first], true);
    }
    for (int t = 0; t < n; ++t) {
      std::copy_n(o[t], kDim, tokens[t].o);
      const float aged_by = std::exp(log_decay[n - 1] - log_decay[t]);
      for (int i = 0; i < kDim; ++i) aged[t][i] = k[t][i] * aged_by;
    }
    const float g = std::exp(log_decay[n - 1]);
    for (auto& row : state) {
      for (float& x : row) x *= g;
    }
    multiply(kDim, kDim, n, {aged[0], 1, kDim}, u[0], kDim, state[0], true);
  }
};

}  // namespace

void delta_chunks(const DeltaToken* tokens, int n_tokens, int chunk, float* s) {
  alignas(64) static thread_local Chunks chunks;
  std::memset(chunks.keys, 0, sizeof chunks.keys);
  for (int j = 0; j < kDim; ++j) {
    for (int i = 0; i < kDim; ++i) chunks.state[i][j] = s[j * kDim + i];
  }
  for (int t = 0; t < n_tokens; t += chunk) chunks.run(tokens + t, std::min(chunk, n_tokens - t));
  for (int j = 0; j < kDim; ++j) {
    for (int i = 0; i < kDim; ++i) s[j * kDim + i] = chunks.state[i][j];
  }
}

}  // namespace sluice::backend::cpu
