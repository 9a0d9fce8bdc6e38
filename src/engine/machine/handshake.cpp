// See handshake.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/handshake.h"

#include <algorithm>
#include <vector>

#include "base/wall_clock.h"
#include "engine/machine/one_expert.h"

namespace sluice::engine {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

// What the host needs beyond the expert's bytes and what the step costs anyway. A layer's hits and
// misses begin together, so what the device took for the one it had found is a part of the wait.
double measure_handshake_us(const model::Model& model, backend::Device& device, ThreadPool& threads,
                            const MachineRates& rates, double seconds) {
  OneExpert expert(model, device, threads);
  const double experts_us = rates.experts_us >= 0.0 ? rates.experts_us : MachineRates().experts_us;
  std::vector<double> extra;
  const double end = wall_seconds() + seconds;
  do {
    expert.advance();
    expert.touch_pages();
    const auto n_bytes = static_cast<double>(expert.n_bytes());
    const double found =
        rates.gpu_gbps > 0.0 ? experts_us * 1e-6 + n_bytes / (rates.gpu_gbps * 1e9) : 0.0;
    const double on_device = expert.on_device();
    extra.push_back(expert.by_host() - on_device + found - n_bytes / (rates.cpu_gbps * 1e9));
  } while (wall_seconds() < end);
  return std::max(median_of(std::move(extra)), 0.0) * 1e6;
}

}  // namespace sluice::engine
