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

constexpr int kLayers = 3, kExperts = 32, kUsed = 4, kTokens = 300;

model::Config config() {
  model::Config config;
  config.n_layers = kLayers;
  config.n_experts = kExperts;
  config.n_experts_used = kUsed;
  return config;
}

// How often each expert was used, by layer; and the share of uses that the token before had too.
struct Uses {
  explicit Uses(const policy::RoutingProfile* profile) {
    TextRouting text(config(), profile);
    std::vector<std::set<int>> before(kLayers);
    int n_again = 0;
    for (int t = 0; t < kTokens; ++t, text.next_token()) {
      for (int l = 0; l < kLayers; ++l) {
        const auto experts = text.experts(LayerId(l));
        const std::set<int> now(experts.begin(), experts.end());
        EXPECT_EQ(std::ssize(now), kUsed);
        for (const int e : now) {
          ++counts[l][static_cast<size_t>(e)];
          n_again += before[static_cast<size_t>(l)].contains(e);
        }
        before[static_cast<size_t>(l)] = now;
      }
    }
    again = static_cast<double>(n_again) / (kTokens * kLayers * kUsed);
  }

  std::vector<int> counts[kLayers] = {std::vector<int>(kExperts), std::vector<int>(kExperts),
                                      std::vector<int>(kExperts)};
  double again = 0.0;
};

// Of uniform noise a quarter of the experts has a quarter of the uses, and an eighth comes again.
TEST(TextRouting, IsUnevenAndStickyUnlikeNoise) {
  Uses uses(nullptr);
  EXPECT_GT(uses.again, 1.5 * kUsed / kExperts);
  for (std::vector<int>& layer : uses.counts) {
    std::ranges::sort(layer, std::greater());
    const double favourites = std::accumulate(layer.begin(), layer.begin() + kExperts / 4, 0.0);
    EXPECT_GT(favourites, 0.4 * kTokens * kUsed);
  }
}

TEST(TextRouting, PrefersWhatTheProfileDoes) {
  policy::RoutingProfile profile(kLayers, kExperts);
  std::vector<uint32_t> known(kLayers * kExperts);
  for (size_t i = 0; i < known.size(); ++i) known[i] = static_cast<uint32_t>(i % kExperts);
  profile.add_run(known, 1000);  // the last expert of each layer is its favourite
  const Uses uses(&profile);
  for (const std::vector<int>& layer : uses.counts) {
    const double upper = std::accumulate(layer.begin() + kExperts / 2, layer.end(), 0.0);
    EXPECT_GT(upper, 0.6 * kTokens * kUsed);
  }
}

TEST(TextRouting, TakesThePlaceOfWhatAStepRouted) {
  const TextRouting text(config(), nullptr);
  for (const int row : {0, 1}) {
    std::vector<int32_t> experts(kUsed, -1);
    text.override_routes()(LayerId(1), row, experts);
    EXPECT_TRUE(std::ranges::equal(experts, text.experts(LayerId(1))));
  }
}

}  // namespace
}  // namespace sluice::engine
