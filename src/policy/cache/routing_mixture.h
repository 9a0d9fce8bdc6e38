// The default policy: an expert's value is the probability that the next step uses it, as a mixture
// of five simple predictors. Their weights are learnt while running, from how well each predicted
// what was used; where copies cost something, up to `horizon` steps ahead, since they pay back over
// several steps:
//   - how long ago it was used last: 1 / (1 + age), scaled so that all experts together get as
//     much as there are uses (else it promises more than the others and is trusted for that);
//   - how often it was used: counts whose half-lives are 8, 64 and 512 steps;
//   - what followed when the model was in a state like this one: of the last 128 steps the 16 whose
//     experts overlap most with those of the step just done, and the four steps after each.
// The last one gives most of the gain; docs/decisions/0005-expert-cache.md has the figures.
//
// A step costs one reading pass over all experts, made of vector instructions; overlaps with all
// remembered steps are counted at once, bit by bit; the neighbours' part is computed only for the
// experts that are asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "policy/cache/replacement.h"
#include "policy/cache/routing_mixture_bits.h"

namespace sluice::policy {

class RoutingMixture : public Replacement {
 public:
  explicit RoutingMixture(size_t n_total, int horizon = 1);

  void observe(std::span<const Use> uses, bool is_token) override;
  size_t list_below(double ceiling, std::span<const uint64_t> set, std::span<int> ids,
                    std::span<double> values) const override;
  bool is_probability() const override { return true; }
  void seed(std::span<const float> rates) override;

 private:
  static constexpr size_t kScales = 3;
  static constexpr uint32_t kHistory = 128;  // steps that are remembered one by one
  static constexpr size_t kWords = kHistory / 64;
  using History = Bits<kWords>;  // a bit for each remembered step
  // By which units of counts grow in a step: 2^(1/8), 2^(1/64), 2^(1/512).
  static constexpr std::array<double, kScales> kGrowth = {1.0905077326652577, 1.0108892860517005,
                                                          1.0013547198921082};

  enum Predictor : size_t { recency, count_8, count_64, count_512, neighbours, uniform };
  static constexpr size_t kPredictors = 6;
  using Probabilities = std::array<float, kPredictors>;

  // The weights of the remembered steps as small integers, bit by bit: an
  // expert's sum is a few counts of bits. `scale` makes it a probability.
  static constexpr size_t kPlanes = 5;
  struct Follow {
    std::array<History, kPlanes> plane = {};
    float scale = 0.0f;

    float probability(const History& history) const {
      int sum = 0;
      for (size_t p = 0; p < kPlanes; ++p) {
        int n = 0;
        for (size_t w = 0; w < kWords; ++w) n += std::popcount(history[w] & plane[p][w]);
        sum += n << p;
      }
      return static_cast<float>(sum) * scale;
    }
  };

  // What the predictors said some steps ago.
  class Past {
   public:
    Past(const RoutingMixture& mixture, uint32_t back);
    Probabilities predict(size_t id) const;

   private:
    const RoutingMixture& mixture_;
    uint32_t back_;
    uint32_t newest_;  // of the steps that were remembered then
    const Follow& follow_;
    History visible_;
    std::array<float, kScales> per_count_ = {};
    std::array<std::array<float, kHistory>, kScales> unit_;  // of the j-th step since
  };

  static float recency_of(float age) { return 1.0f / (1.0f + age); }
  void learn_weights(std::span<const Use> uses);
  void count(std::span<const Use> uses);
  void set_value_weights();
  void set_values();
  void renew_units();
  void remember(std::span<const Use> uses);
  void find_neighbours();
  void set_follow_weights(std::span<const float> weights);  // [kHistory]

  size_t n_total_;
  size_t n_padded_;        // n_total, and up to a word of bits
  uint32_t horizon_;       // steps
  uint32_t n_in_row_ = 0;  // tokens, one step each, up to the last one
  uint64_t n_steps_ = 0;
  Probabilities weight_;                           // of each predictor, as learnt
  Probabilities lean_ = {};                        // what values make of it
  std::array<float, kScales> count_lean_ = {};     // lean / norm, for counts in their unit
  std::array<float, kScales> count_norm_;          // the count of an expert used in every step
  std::array<std::vector<float>, kScales> count_;  // [n_padded], in units that grow with every step
  std::array<double, kScales> unit_;               // so that only the experts used are touched
  float now_ = 0.0f;                               // steps since the units were renewed
  std::vector<float> last_use_;                    // [n_padded], in the same steps
  std::vector<float> values_;                      // [n_padded], without what neighbours say
  float n_used_ = 0.0f;                            // experts in the last step
  float recency_scale_ = 0.5f;                     // makes recency a probability

  uint32_t n_remembered_ = 0;  // the i-th one is row i % kHistory
  History remembered_ = {};    // all rows that hold one
  size_t n_row_words_;
  std::vector<uint64_t> rows_;    // [kHistory, n_row_words], the experts of each remembered step
  std::vector<History> history_;  // [n_total], the remembered steps of each
                                  // expert; and an empty one
  std::vector<int> sample_;       // [n_sample], experts of the last step, by which states compare
  size_t n_sample_ = 0;
  std::vector<Follow> follow_;  // [horizon], after the i-th remembered step at i % horizon
};

}  // namespace sluice::policy
