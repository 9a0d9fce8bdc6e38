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

// What the host needs beyond the expert's bytes and what the step costs anyway.
double measure_handshake_us(const model::Model& model, backend::Device& device, ThreadPool& threads,
                            double cpu_gbps, double seconds) {
  OneExpert expert(model, device, threads);
  const double by_rate = static_cast<double>(expert.n_bytes()) / (cpu_gbps * 1e9);
  std::vector<double> extra;
  const double end = wall_seconds() + seconds;
  do {
    const double on_device = expert.on_device();
    extra.push_back(expert.by_host() - on_device - by_rate);
  } while (wall_seconds() < end);
  return std::max(median_of(std::move(extra)), 0.0) * 1e6;
}

}  // namespace sluice::engine
