// Recurrence or chunks? How long a token of a prompt takes in one head of a gated DeltaNet (128
// dimensions), by the recurrence that Ops::delta_net goes through and by the chunked form: the
// same sums as products of matrices and a triangular solve, on AVX-512 where the recurrence is too.
//
//   cmake --preset release -DSLUICE_BENCH=ON && ninja -C build/release bench_delta_net
//   build/release/bench/bench_delta_net
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "backend/cpu/attend_wide.h"
#include "backend/cpu/delta_rule.h"
#include "base/random.h"
#include "bench/delta_chunks.h"

namespace sluice::backend::cpu {
namespace {

constexpr int kDim = 128;
constexpr int kMostTokens = 512;

struct Text {
  Text() {
    for (std::vector<float>* x : {&q, &k, &v, &o}) x->resize(size_t{kMostTokens} * kDim);
    for (size_t i = 0; i < q.size(); ++i) {
      q[i] = random_signed(random_bits(1, i)) / kDim;
      k[i] = random_signed(random_bits(2, i)) * std::sqrt(3.0f / kDim);  // of length 1, about
      v[i] = random_signed(random_bits(3, i));
    }
  }

  std::vector<DeltaToken> tokens(int n, int column) {
    std::vector<DeltaToken> out;
    for (int t = 0; t < n; ++t) {
      const size_t row = static_cast<size_t>(t) * kDim;
      const auto gate = [&](uint64_t seed) {
        return 0.5f + 0.5f * random_signed(random_bits(seed, static_cast<uint64_t>(t)));
      };
      out.push_back({&q[row], &k[row], &v[row] + column, &o[row] + column, nullptr,
                     0.9f + 0.09f * gate(4), 0.1f + 0.8f * gate(5)});
    }
    return out;
  }

  std::vector<float> q, k, v, o;
};

using Form = std::function<void(int n_tokens, float* state)>;

double nanoseconds_per_token(const Form& form, int n_tokens, std::vector<float>& state) {
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    std::ranges::fill(state, 0.01f);
    const auto start = std::chrono::steady_clock::now();
    form(n_tokens, state.data());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best / n_tokens * 1e9;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

void compare() {
  Text text;
  const auto by_columns = [&](auto rule) -> Form {
    return [&text, rule](int n, float* state) {
      for (int column = 0; column < kDim; column += kDeltaColumns) {
        float* const s = state + column * kDim;
        const std::vector<DeltaToken> tokens = text.tokens(n, column);
        rule(tokens.data(), n, DeltaColumns{s, s, kDim, kDeltaColumns});
      }
    };
  };
  std::vector<std::pair<const char*, Form>> forms = {{"recurrence", by_columns(delta_rule)}};
  if (can_attend_wide()) {
    forms.emplace_back("recurrence, AVX-512", by_columns(wide_delta_rule));
    for (const auto& [name, chunk] :
         {std::pair{"chunks of 64", 64}, std::pair{"chunks of 32", 32}, {"chunks of 16", 16}}) {
      forms.emplace_back(name, [&text, chunk = chunk](int n, float* state) {
        const std::vector<DeltaToken> tokens = text.tokens(n, 0);
        delta_chunks(tokens.data(), n, chunk, state);
      });
    }
  }
  std::printf("%-22s %8s %12s %12s\n", "ns a token and head", "tokens", "", "off by");
  std::vector<float> expected, state(size_t{kDim} * kDim);
  for (const auto& [name, form] : forms) {
    for (const int n : {1, 16, 64, 128, kMostTokens}) {
      const double ns = nanoseconds_per_token(form, n, state);
      if (expected.empty() && n == kMostTokens) expected = state;
      const bool is_whole = n == kMostTokens;
      std::printf("%-22s %8d %12.0f", name, n, ns);
      is_whole ? std::printf(" %12.1e\n", largest_difference(expected, state)) : std::printf("\n");
    }
  }
}

}  // namespace sluice::backend::cpu

int main() { sluice::backend::cpu::compare(); }
