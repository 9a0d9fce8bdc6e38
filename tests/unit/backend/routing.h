// Owners of what route() writes and experts() reads: the two forms of the input, and the choice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/activation.h"
#include "unit/backend/samples.h"

namespace sluice::backend::test {

// The experts' input. The int8 form exists only where n_cols is a multiple of 32.
struct ExpertInput {
  explicit ExpertInput(const Rows& rows) : f32(rows) {
    if (rows.n_cols % 32 != 0) return;
    q.resize(f32.values.size());
    d.resize(f32.values.size() / 32);
    y.resize(f32.values.size() / 32);
    quant::quantize_activation(f32.values, q.data(), d.data(), y.data());
  }
  ExpertInput(int64_t n_rows, int64_t n_cols) : ExpertInput(Rows(n_rows, n_cols)) {}

  ExpertInputView view() {
    ExpertInputView v{.n_rows = f32.n_rows, .n_cols = f32.n_cols, .f32 = f32.values.data()};
    if (!q.empty()) v.q = q.data(), v.d = d.data(), v.y = y.data();
    return v;
  }

  Rows f32;
  std::vector<int8_t> q;
  std::vector<float> d, y;
};

struct Routing {
  Routing(int64_t n_rows, int used)
      : n_used(used),
        experts(static_cast<size_t>(n_rows * used), -1),
        weights(static_cast<size_t>(n_rows * used), -777.0f),
        shared_weights(static_cast<size_t>(n_rows), -777.0f) {}

  // Different experts in every row, weights of about 1 / n_used.
  static Routing random(int64_t n_rows, int used, int n_experts, uint64_t seed) {
    Routing out(n_rows, used);
    for (int64_t r = 0; r < n_rows; ++r) {
      const auto row_seed = random_bits(seed, static_cast<uint64_t>(r));
      std::vector<int32_t> deck;
      for (int e = 0; e < n_experts; ++e) {
        deck.push_back(e);
        std::swap(deck.back(), deck[random_bits(row_seed, deck.size()) % deck.size()]);
      }
      for (int k = 0; k < used; ++k) {
        const auto at = static_cast<size_t>(r * used + k);
        out.experts[at] = deck[static_cast<size_t>(k)];
        out.weights[at] =
            (1.5f + random_signed(random_bits(row_seed, 1000 + at))) / static_cast<float>(used);
      }
      out.shared_weights[static_cast<size_t>(r)] = random_signed(random_bits(row_seed, 999));
    }
    return out;
  }

  RoutingView view() { return {n_used, experts.data(), weights.data(), shared_weights.data()}; }

  // Some of the rows, in the given order.
  Routing picked(std::span<const int64_t> which) const {
    Routing out(std::ssize(which), n_used);
    for (size_t i = 0; i < which.size(); ++i) {
      const auto to = static_cast<int64_t>(i) * n_used, from = which[i] * n_used;
      std::copy_n(experts.data() + from, n_used, out.experts.data() + to);
      std::copy_n(weights.data() + from, n_used, out.weights.data() + to);
      out.shared_weights[i] = shared_weights[static_cast<size_t>(which[i])];
    }
    return out;
  }

  int n_used;
  std::vector<int32_t> experts;
  std::vector<float> weights, shared_weights;
};

}  // namespace sluice::backend::test
