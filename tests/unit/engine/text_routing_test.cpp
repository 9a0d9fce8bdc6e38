// Routing for measuring: uneven and sticky as a text's, by the profile where there is one, and
// every token's experts are different ones.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/text_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace sluice::engine {
namespace {

constexpr int kTextLayers = 3, kTextExperts = 32, kTextUsed = 4, kTextTokens = 300;

model::Config config() {
  model::Config config;
  config.n_layers = kTextLayers;
  config.n_experts = kTextExperts;
  config.n_experts_used = kTextUsed;
  return config;
}

// How often each expert was used, by layer; and the share of uses that the token before had too.
struct Uses {
  explicit Uses(const policy::RoutingProfile* profile) {
    TextRouting text(config(), profile);
    std::vector<std::set<int>> before(kTextLayers);
    int n_again = 0;
    for (int t = 0; t < kTextTokens; ++t, text.next_token()) {
      for (int l = 0; l < kTextLayers; ++l) {
        const auto experts = text.experts(LayerId(l));
        const std::set<int> now(experts.begin(), experts.end());
        EXPECT_EQ(std::ssize(now), kTextUsed);
        for (const int e : now) {
          ++counts[l][static_cast<size_t>(e)];
          n_again += before[static_cast<size_t>(l)].contains(e);
        }
        before[static_cast<size_t>(l)] = now;
      }
    }
    again = static_cast<double>(n_again) / (kTextTokens * kTextLayers * kTextUsed);
  }

  std::vector<int> counts[kTextLayers] = {std::vector<int>(kTextExperts),
                                          std::vector<int>(kTextExperts),
                                          std::vector<int>(kTextExperts)};
  double again = 0.0;
};

// Of uniform noise a quarter of the experts has a quarter of the uses, and an eighth comes again.
TEST(TextRouting, IsUnevenAndStickyUnlikeNoise) {
  Uses uses(nullptr);
  EXPECT_GT(uses.again, 1.5 * kTextUsed / kTextExperts);
  for (std::vector<int>& layer : uses.counts) {
    std::ranges::sort(layer, std::greater());
    const double favourites = std::accumulate(layer.begin(), layer.begin() + kTextExperts / 4, 0.0);
    EXPECT_GT(favourites, 0.4 * kTextTokens * kTextUsed);
  }
}

TEST(TextRouting, PrefersWhatTheProfileDoes) {
  policy::RoutingProfile profile(kTextLayers, kTextExperts);
  std::vector<uint32_t> known(kTextLayers * kTextExperts);
  for (size_t i = 0; i < known.size(); ++i) known[i] = static_cast<uint32_t>(i % kTextExperts);
  profile.add_run(known, 1000);  // the last expert of each layer is its favourite
  const Uses uses(&profile);
  for (const std::vector<int>& layer : uses.counts) {
    const double upper = std::accumulate(layer.begin() + kTextExperts / 2, layer.end(), 0.0);
    EXPECT_GT(upper, 0.6 * kTextTokens * kTextUsed);
  }
}

TEST(TextRouting, TakesThePlaceOfWhatAStepRouted) {
  const TextRouting text(config(), nullptr);
  for (const int row : {0, 1}) {
    std::vector<int32_t> experts(kTextUsed, -1);
    text.override_routes()(LayerId(1), row, experts);
    EXPECT_TRUE(std::ranges::equal(experts, text.experts(LayerId(1))));
  }
}

}  // namespace
}  // namespace sluice::engine
