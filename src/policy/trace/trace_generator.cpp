// See trace_generator.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/trace_generator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace sluice::policy {

namespace {

// An expert's score is popularity(topic) * unevenness(depth) + pull of the token + echo of the last
// token + noise of variance 1, uniform ones of noise alone; the best scores are routed. The
// constants were fitted to the recorded trace's hit rates (LRU and Belady at five budgets) and
// overlaps at lags 1 to 64.
constexpr float kUnevenFirst = 0.40f;  // in the first layer
constexpr float kUnevenLast = 1.96f;
constexpr float kDepthExponent = 0.275f;
constexpr float kCommonPart = 0.70f;  // of the popularity, in all topics
constexpr float kTopicPart = 0.90f;
constexpr float kToken = 1.2f;
constexpr float kEcho = 0.95f;
constexpr double kRepeat = 0.36;  // a token is one of the last kRecent
constexpr size_t kRecent = 64;
constexpr int kTopicTokens = 300;
constexpr double kZipf = 1.25;         // the i-th most frequent token's share falls as i^-kZipf
constexpr double kCommonTokens = 0.5;  // a new token is one that all topics have

// What a random stream is for.
enum Stream : uint64_t { common = 1, topic = 2, token = 3, noise = 4, choice = 5 };

// About normal, of variance 1: the sum of four uniform numbers.
float normal(uint64_t bits) {
  constexpr float kSqrt3 = 1.7320508f;
  float sum = -2.0f;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>((bits >> (16 * i)) & 0xffff) * 0x1p-16f;
  return sum * kSqrt3;
}

uint64_t stream_seed(uint64_t seed, Stream stream, uint64_t index) {
  return mix64(mix64(seed) + stream * 0x9e3779b97f4a7c15u + mix64(index));
}

void fill_normal(std::vector<float>& out, uint64_t seed) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = normal(random_bits(seed, i));
}

}  // namespace

RoutingShape generator_shape(int n_layers, int n_experts, int n_experts_used,
                             uint64_t expert_bytes) {
  return {.n_layers = n_layers,
          .n_experts = n_experts,
          .n_experts_used = n_experts_used,
          .expert_bytes = std::vector<uint64_t>(static_cast<size_t>(n_layers), expert_bytes)};
}

TraceGenerator::TraceGenerator(const GeneratorOptions& options) : options_(options) {
  check_shape(options_.shape, "generated trace");
  CHECK(options_.n_prefill >= 0 && options_.n_decode >= 0 && options_.topic_steps >= 1);
  double sum = 0.0;
  for (int i = 1; i <= kTopicTokens; ++i) rank_sums_.push_back(sum += std::pow(i, -kZipf));
  const auto n = static_cast<size_t>(options_.shape.n_total());
  popularity_.resize(n);
  token_.resize(n);
  before_.resize(n);
  scores_.resize(static_cast<size_t>(options_.shape.n_experts));
  start_topic();
}

TraceHeader TraceGenerator::header() const { return {"generated", options_.shape}; }

double TraceGenerator::draw() {
  const uint64_t bits = random_bits(stream_seed(options_.seed, choice, 0), n_draws_++);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

void TraceGenerator::start_topic() {
  const auto n_experts = static_cast<size_t>(options_.shape.n_experts);
  const uint64_t common_seed = stream_seed(options_.seed, common, 0);
  const uint64_t topic_seed = stream_seed(options_.seed, topic, static_cast<uint64_t>(topic_));
  const auto last = static_cast<float>(std::max(1, options_.shape.n_layers - 1));
  for (size_t i = 0; i < popularity_.size(); ++i) {
    const float depth = static_cast<float>(i / n_experts) / last;
    const float uneven =
        kUnevenFirst + (kUnevenLast - kUnevenFirst) * std::pow(depth, kDepthExponent);
    popularity_[i] = uneven * (kCommonPart * normal(random_bits(common_seed, i)) +
                               kTopicPart * normal(random_bits(topic_seed, i)));
  }
}

// Topic 0's tokens are the common ones.
TokenId TraceGenerator::draw_token() {
  if (!recent_.empty() && draw() < kRepeat) {
    return recent_[static_cast<size_t>(draw() * static_cast<double>(recent_.size()))];
  }
  const auto rank =
      std::lower_bound(rank_sums_.begin(), rank_sums_.end(), draw() * rank_sums_.back()) -
      rank_sums_.begin();
  const int vocabulary = draw() < kCommonTokens ? 0 : topic_;
  return vocabulary * kTopicTokens + static_cast<TokenId>(rank);
}

void TraceGenerator::route_layer(int layer, RoutingStep& step) {
  const auto n_experts = static_cast<size_t>(options_.shape.n_experts);
  const auto n_used = static_cast<size_t>(options_.shape.n_experts_used);
  const size_t first = static_cast<size_t>(layer) * n_experts;
  const uint64_t noise_seed = stream_seed(options_.seed, noise, static_cast<uint64_t>(n_steps_));
  for (size_t e = 0; e < n_experts; ++e) {
    const size_t i = first + e;
    const float text = popularity_[i] + kToken * token_[i] + kEcho * before_[i];
    const float score = (options_.is_uniform ? 0.0f : text) + normal(random_bits(noise_seed, i));
    scores_[e] = {-score, static_cast<int>(e)};
  }
  const auto end = scores_.begin() + static_cast<std::ptrdiff_t>(n_used);
  std::partial_sort(scores_.begin(), end, scores_.end());
  float sum = 0.0f;
  for (auto it = scores_.begin(); it != end; ++it) sum += std::exp(scores_[0].first - it->first);
  for (auto it = scores_.begin(); it != end; ++it) {
    step.routed.push_back({ExpertId(it->second), std::exp(scores_[0].first - it->first) / sum});
  }
}

bool TraceGenerator::next(RoutingStep& step) {
  if (n_steps_ == options_.n_prefill + options_.n_decode) return false;
  if (n_steps_ > 0 && n_steps_ % options_.topic_steps == 0) {
    ++topic_;
    start_topic();
  }
  const TokenId token = draw_token();
  token_.swap(before_);
  fill_normal(token_, stream_seed(options_.seed, Stream::token, static_cast<uint64_t>(token)));
  if (recent_.size() < kRecent) {
    recent_.push_back(token);
  } else {
    recent_[static_cast<size_t>(n_steps_) % kRecent] = token;
  }
  step.phase = n_steps_ < options_.n_prefill ? Phase::prefill : Phase::decode;
  step.token = token;
  step.routed.clear();
  step.begin.assign(1, 0);
  for (int l = 0; l < options_.shape.n_layers; ++l) {
    route_layer(l, step);
    step.begin.push_back(static_cast<int>(step.routed.size()));
  }
  ++n_steps_;
  return true;
}

RoutingTrace generate_trace(const GeneratorOptions& options) {
  TraceGenerator generator(options);
  RoutingTrace trace{generator.header(), {}};
  RoutingStep step;
  while (generator.next(step)) trace.steps.push_back(step);
  return trace;
}

}  // namespace sluice::policy
