// The default policy: an expert's value is the probability that the next step uses it, as a mixture
// of five simple predictors, whose weights are learnt while running from how well each foretold
// what was used:
//   - how long ago it was used last: 0.5 / (1 + age);
//   - how often it was used: counts whose half-lives are 8, 64 and 512 steps;
//   - what followed when the model was in a state like this one: of the last 128 steps the 16 whose
//     experts overlap most with those of the step just done, and the four steps after each.
// The last one is what sets it apart; docs/decisions/0005-expert-cache.md has the figures.
//
// A step costs one pass over all experts, made of vector instructions, and one over the remembered
// steps; what neighbours say is worked out only for the experts that are asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "policy/replacement.h"

namespace sluice::policy {

class RoutingMixture : public Replacement {
 public:
  explicit RoutingMixture(size_t n_total);

  void observe(std::span<const Use> uses, bool is_token) override;
  void values(std::span<const int> ids, std::span<double> out) const override;
  bool is_probability() const override { return true; }
  void seed(std::span<const float> rates) override;

 private:
  static constexpr size_t kScales = 3;
  static constexpr uint32_t kHistory = 128;  // steps that are remembered one by one
  static constexpr size_t kWords = kHistory / 64;
  using History = std::array<uint64_t, kWords>;  // a bit for each remembered step

  enum Predictor : size_t { recency, count_8, count_64, count_512, neighbours, uniform };
  static constexpr size_t kPredictors = 6;
  using Probabilities = std::array<float, kPredictors>;

  float follows(size_t id) const;
  void learn_weights(std::span<const Use> uses);
  void count(std::span<const Use> uses);
  float value_at(size_t id) const;  // without what neighbours say, as are values_
  void set_value_weights();
  void remember(std::span<const Use> uses);
  void find_neighbours();
  void set_follow_weights(std::span<const float> weights);  // [kHistory]

  size_t n_total_;
  uint64_t n_steps_ = 0;
  Probabilities weight_;                           // of each predictor, as learnt
  Probabilities lean_ = {};                        // what values make of it
  std::array<float, kScales> count_lean_ = {};     // lean / norm
  std::array<float, kScales> count_norm_;          // the count of an expert used in every step
  std::array<std::vector<float>, kScales> count_;  // [n_total]
  std::vector<float> age_;                         // [n_total], steps since the last use

  uint32_t n_remembered_ = 0;  // the i-th one is row i % kHistory
  size_t n_row_words_;
  size_t n_sample_words_;
  std::vector<uint64_t> rows_;    // [kHistory, n_row_words], the experts of each remembered step
  std::vector<uint64_t> sample_;  // [kHistory, n_sample_words], every other word of these
  std::vector<History> history_;  // [n_total], the remembered steps of each expert

  // The weights of the remembered steps as small integers, bit by bit: an expert's sum is a few
  // counts of bits. follow_scale_ makes it a probability.
  static constexpr size_t kPlanes = 5;
  std::array<History, kPlanes> follow_plane_ = {};
  float follow_scale_ = 0.0f;
};

}  // namespace sluice::policy
