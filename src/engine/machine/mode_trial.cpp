// See mode_trial.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/mode_trial.h"

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace sluice::engine {
namespace {

constexpr int kLeastWarmUp = 8;
constexpr double kWarmUpSeconds = 2.0;
constexpr int kTrialSteps = 24;
constexpr uint64_t kSeed = 11;

}  // namespace

double try_steps(const MakeDriver& make_driver, TextRouting& text, int n_vocab, int n_ctx) {
  const std::unique_ptr<StepDriver> driver = make_driver(text.override_routes());
  const int most_warm_up = std::clamp(n_ctx - kTrialSteps, kLeastWarmUp, kTrialWarmUp);
  const double first = driver->seconds();
  bool is_warm = false;
  std::vector<double> seconds;
  for (int i = 0; i < n_ctx && std::ssize(seconds) < kTrialSteps; ++i) {
    const auto token = static_cast<TokenId>(random_bits(kSeed, static_cast<uint64_t>(i)) %
                                            static_cast<uint64_t>(n_vocab));
    const StepRow row{token, {}, true};
    if (i > 0) text.next_token();
    const double start = driver->seconds();
    is_warm =
        is_warm || i >= most_warm_up || (i >= kLeastWarmUp && start - first >= kWarmUpSeconds);
    driver->step({&row, 1}, policy::Phase::decode, {[](int64_t, std::span<const float>) {}});
    if (is_warm || i + 1 == n_ctx) seconds.push_back(driver->seconds() - start);
  }
  std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
  return 1.0 / std::max(seconds[seconds.size() / 2], 1e-9);
}

}  // namespace sluice::engine
