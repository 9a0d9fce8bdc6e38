// See text_routing.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/text_routing.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace sluice::engine {
namespace {

constexpr int kRankSteps = 128;  // by which the generator's favourites are known

policy::GeneratorOptions generator_options(const model::Config& config) {
  policy::GeneratorOptions options;
  options.shape = policy::generator_shape(config.n_layers, config.n_experts, config.n_experts_used);
  options.n_prefill = 0;
  options.n_decode = std::numeric_limits<int>::max();
  return options;
}

// The experts of one layer, the most used first.
std::vector<int32_t> ranking(std::span<const float> uses) {
  std::vector<int32_t> order(uses.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](int32_t e) { return uses[static_cast<size_t>(e)]; });
  return order;
}

std::vector<float> generated_uses(const model::Config& config) {
  std::vector<float> uses(static_cast<size_t>(config.n_layers) *
                          static_cast<size_t>(config.n_experts));
  policy::TraceGenerator generator(generator_options(config));
  policy::RoutingStep step;
  for (int i = 0; i < kRankSteps && generator.next(step); ++i) {
    for (int l = 0; l < config.n_layers; ++l) {
      for (const policy::RoutedExpert& routed : step.layer(l)) {
        uses[static_cast<size_t>(l * config.n_experts + routed.expert.value)] += 1.0f;
      }
    }
  }
  return uses;
}

}  // namespace

TextRouting::TextRouting(const model::Config& config, const policy::RoutingProfile* profile)
    : n_layers_(config.n_layers),
      n_experts_(config.n_experts),
      n_used_(config.n_experts_used),
      generator_(generator_options(config)),
      names_(static_cast<size_t>(n_layers_) * static_cast<size_t>(n_experts_)),
      experts_(static_cast<size_t>(n_layers_) * static_cast<size_t>(n_used_)) {
  const auto n = static_cast<size_t>(n_experts_);
  for (size_t i = 0; i < names_.size(); ++i) names_[i] = static_cast<int32_t>(i % n);
  if (profile) {
    CHECK(profile->n_layers() == n_layers_ && profile->n_experts() == n_experts_);
    const std::vector<float> generated = generated_uses(config), known = profile->rates();
    for (size_t first = 0; first < names_.size(); first += n) {
      const std::vector<int32_t> from = ranking(std::span(generated).subspan(first, n));
      const std::vector<int32_t> to = ranking(std::span(known).subspan(first, n));
      for (size_t r = 0; r < n; ++r) names_[first + static_cast<size_t>(from[r])] = to[r];
    }
  }
  next_token();
}

void TextRouting::next_token() {
  CHECK(generator_.next(step_));
  for (int l = 0; l < n_layers_; ++l) {
    const auto routed = step_.layer(l);
    for (int r = 0; r < n_used_; ++r) {
      experts_[static_cast<size_t>(l * n_used_ + r)] =
          names_[static_cast<size_t>(l * n_experts_ + routed[static_cast<size_t>(r)].expert.value)];
    }
  }
}

std::span<const int32_t> TextRouting::experts(LayerId layer) const {
  return std::span(experts_).subspan(static_cast<size_t>(layer.value * n_used_),
                                     static_cast<size_t>(n_used_));
}

RouteOverride TextRouting::override_routes() const {
  return [this](LayerId layer, int64_t /*row*/, std::span<int32_t> forced) {
    std::ranges::copy(experts(layer), forced.begin());
  };
}

}  // namespace sluice::engine
