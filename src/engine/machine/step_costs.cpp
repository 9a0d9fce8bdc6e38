// See step_costs.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/step_costs.h"

#include <algorithm>
#include <new>
#include <vector>

#include "backend/pick.h"
#include "base/random.h"
#include "base/step_memory.h"
#include "base/wall_clock.h"
#include "sampler/sampler.h"

namespace sluice::engine {
namespace {

constexpr int kTogether = 8;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Of a recording that does next to nothing: once, and several times before the host waits. What
// each further one adds is its launch; the rest is the wait.
void measure_recording(backend::Device& device, double seconds, StepCosts& costs) {
  const auto memory = device.allocate(backend::MemoryKind::mapped, sizeof(uint64_t));
  auto* const word = new (memory.data()) uint64_t{0};
  const auto stream = device.make_stream("calibration");
  stream->begin_recording();
  stream->set(word, 1);
  const auto recording = stream->end_recording();
  const auto replay = [&](int n) {
    const double start = wall_seconds();
    for (int i = 0; i < n; ++i) stream->replay(*recording);
    stream->finish();
    return wall_seconds() - start;
  };
  std::vector<double> once, often;
  const double end = wall_seconds() + seconds;
  do {
    once.push_back(replay(1));
    often.push_back(replay(kTogether));
  } while (wall_seconds() < end);
  const double launch = std::max((median_of(often) - median_of(once)) / (kTogether - 1), 0.0);
  costs.launch_us = launch * 1e6;
  costs.readback_us = std::max(median_of(once) - launch, 0.0) * 1e6;
}

// Among the candidates that cross from a device with a token.
double sampling_seconds(double seconds) {
  sampler::SamplerOptions options;
  options.seed = 1;
  sampler::Sampler sampler(options, backend::kMaxBest);
  std::vector<float> logits(backend::kMaxBest);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 8.0f * random_signed(random_bits(1, i));
  std::vector<double> choosing;
  const double end = wall_seconds() + seconds;
  do {
    const double start = wall_seconds();
    sampler.accept(sampler.sample(logits));
    choosing.push_back(wall_seconds() - start);
  } while (wall_seconds() < end);
  return median_of(choosing);
}

}  // namespace

StepCosts measure_step_costs(backend::Device& device, double seconds) {
  StepCosts costs;
  measure_recording(device, seconds / 2, costs);
  costs.sampling_us = sampling_seconds(seconds / 4) * 1e6;
  return costs;
}

double measure_recordings(backend::Device& device, int n_layers) {
  constexpr int kWorkOfLayer = 8, kWorkBesides = 16;
  const auto memory = device.allocate(backend::MemoryKind::mapped, sizeof(uint64_t));
  auto* const word = new (memory.data()) uint64_t{0};
  const uint64_t before = device.free_bytes();
  const auto stream = device.make_stream("calibration");
  std::vector<std::unique_ptr<backend::Recording>> recordings;
  for (int width = 1; width <= kNarrowRows; width *= 2) {
    stream->begin_recording();
    for (int i = 0; i < n_layers * kWorkOfLayer + kWorkBesides; ++i) stream->set(word, 1);
    recordings.push_back(stream->end_recording());
    stream->replay(*recordings.back());
    stream->finish();
  }
  const uint64_t after = device.free_bytes();
  // A step's own kernels take more parameters than these.
  return 2.0 * static_cast<double>(before - std::min(before, after)) / kMiB;
}

}  // namespace sluice::engine
