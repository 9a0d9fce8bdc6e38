// What answers consist of: log-probabilities, the page's map, and the engine's errors as answers.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "server/answering/logprobs.h"
#include "server/api_error.h"
#include "server/live_state.h"

namespace sluice::server {
namespace {

TEST(ErrorShapes, FullQueueSaysWhenToComeAgain) {
  const HttpResponse response =
      error_response(Api::openai, to_api_error(Error(Errc::busy, "too many")));
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.at(0).first, "Retry-After");
}

TEST(Logprobs, AreThoseOfTheSoftmax) {
  const std::vector<float> logits = {1.0f, 3.0f, 2.0f, 3.0f};
  const double sum = std::exp(1.0) + std::exp(2.0) + 2 * std::exp(3.0);
  const TokenLogprobs result = logprobs_of(logits, 2, 3);
  EXPECT_NEAR(result.token.logprob, std::log(std::exp(2.0) / sum), 1e-5);
  ASSERT_EQ(result.best.size(), 3U);
  EXPECT_EQ(result.best[0].id, 1);
  EXPECT_EQ(result.best[1].id, 3);
  EXPECT_EQ(result.best[2].id, 2);
}

TEST(LiveState, MapsAsThePageReadsThem) {
  const uint8_t bytes[] = {'M', 'a', 'n', 'M'};
  EXPECT_EQ(base64(bytes), "TWFuTQ==");
  EXPECT_EQ(base64(std::span(bytes).first(2)), "TWE=");
  ExpertMap map{.n_layers = 1, .n_experts = 2};
  map.where = {ExpertMap::Where::vram, ExpertMap::Where::ram};
  map.heat = {8.0f, 0.0f};
  const Json json = map_json(map);
  EXPECT_EQ(json["where"], "AQA=");
  EXPECT_EQ(json["heat"], "/wA=");
}

}  // namespace
}  // namespace sluice::server
