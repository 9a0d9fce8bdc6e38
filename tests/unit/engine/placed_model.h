// A tiny model on a device, mostly the RAM device, placed as a test says, and its logits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "backend/ram/ram_device.h"
#include "base/units.h"
#include "engine/device/expert_runtime.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {

struct Place {
  double share = 0.5;  // of all experts that the device holds
  policy::PolicyKind policy = policy::PolicyKind::mixture;
  backend::RamDeviceOptions device{
      .n_bytes = 256 * kMiB, .link_gbps = 4.0, .delay_us = 2.0, .before_copy = {}};
  MissWorkerOptions misses{};
  double link_share = 0.0;
  int n_host_layers = 0;
  int n_host_threads = 2;
  StepCut cut = StepCut::whole;
  StagingOptions staging{};
  int n_ctx = 96;
  int n_sequences = 1;
  int max_rows = 64;
  uint64_t stream_bytes = 0;  // 0: as priced
  const policy::RoutingProfile* profile = nullptr;
  RouteOverride reroute = {};
  bool logs = true;
  bool weaves = false;
};

// Copies that are always in time, on a link that is always idle.
inline StagingOptions eager_staging() {
  return {.enabled = true,
          .link_gbps = 100.0,
          .layer_seconds = 1.0,
          .hits_seconds = 1.0,
          .max_waste = 100.0,
          .copy_cost = 0.0};
}

inline policy::CacheOptions cache_options(const policy::ModelShape& shape, const Place& place) {
  policy::CacheOptions options{.policy = place.policy, .n_experts = 0, .layers = {}};
  double n_before = 0.5;  // networks of a dense model's layers so far, to be rounded
  for (const policy::LayerShape& layer : shape.layers) {
    options.n_experts = layer.n_experts;
    const double n_with = n_before + place.share;
    const auto n_slots = shape.is_dense
                             ? static_cast<int>(n_with) - static_cast<int>(n_before)
                             : static_cast<int>(std::lround(place.share * layer.n_experts));
    n_before = n_with;
    options.layers.push_back({layer.expert_bytes, n_slots, false});
  }
  for (int i = 0; i < place.n_host_layers; ++i) {
    options.layers[static_cast<size_t>(i)] = {0, 0, false};
  }
  return options;
}

inline ExpertRuntimeOptions options_for(const policy::ModelShape& shape, const Place& place) {
  ExpertRuntimeOptions o;
  o.work = {
      .n_ctx = place.n_ctx, .n_sequences = place.n_sequences, .prefill_chunk = place.max_rows};
  o.cache = cache_options(shape, place);
  o.place = {.n_gpu_layers = shape.n_layers() - place.n_host_layers,
             .n_slots = {},
             .overhead_bytes = 0,
             .link_share = place.link_share,
             .pin_limit = place.device.pin_limit};
  for (const policy::CacheLayer& layer : o.cache.layers) o.place.n_slots.push_back(layer.n_slots);
  o.link_gbps = place.device.link_gbps;
  o.cpu_gbps = place.device.cpu_gbps;
  o.handshake_us = place.device.handshake_us;
  o.cut = place.cut;
  o.staging = place.staging;
  o.stream_bytes = place.stream_bytes;
  o.copies.poison = true;
  o.misses = place.misses;
  o.profile = place.profile;
  o.reroute = place.reroute;
  o.logs = place.logs;
  o.weaves = place.weaves;
  return o;
}

inline std::vector<TokenId> text(size_t n = 40) { return random_tokens(n, 5); }

struct PlacedOn {
  PlacedOn(const OpenModel& m, backend::Device& device, const Place& place)
      : shape(m.shape()),
        experts(*m, device),
        host_threads(place.n_host_threads),
        runtime(experts, shape, device, host_threads, options_for(shape, place)) {}

  // The first tokens together, then one by one.
  Logits run(std::span<const TokenId> tokens, size_t n_prompt = 9,
             const std::function<void()>& between = {}) {
    Logits all;
    for (size_t begin = 0; begin < tokens.size();) {
      const size_t n = std::min(begin == 0 ? n_prompt : 1, tokens.size() - begin);
      std::vector<StepRow> rows;
      for (const TokenId token : tokens.subspan(begin, n)) rows.push_back({token, {}, true});
      const auto phase = n > 1 ? policy::Phase::prefill : policy::Phase::decode;
      runtime.step(rows, phase, {[&](int64_t, std::span<const float> logits) {
                     all.insert(all.end(), logits.begin(), logits.end());
                   }});
      begin += n;
      if (between) between();
    }
    return all;
  }

  policy::ModelShape shape;
  RegisteredExperts experts;
  ThreadPool host_threads;
  ExpertRuntime runtime;
};

// Takes experts out of the table and puts them back at random. round: where the last one ended.
inline void shuffle_residency(ExpertRuntime& runtime, const model::Model& model, uint64_t& round) {
  runtime.copies().finish();
  ExpertSlots& slots = runtime.slots();
  const policy::ExpertCache& cache = runtime.cache();
  for (int layer = 0; layer < model.config().n_layers; ++layer) {
    for (int e = 0; e < model.config().n_experts; ++e) {
      const policy::ExpertKey key{LayerId(layer), ExpertId(e)};
      const bool stays = random_bits(++round, 3) % 2 == 0;
      slots.publish(key, stays && cache.resident(key.layer, key.expert)
                             ? slots.slot(cache.pool(key.layer), cache.slot(key.layer, key.expert))
                             : nullptr);
    }
  }
}

struct OwnRamDevice {
  backend::RamDevice device;
};
struct Placed : OwnRamDevice, PlacedOn {
  Placed(const OpenModel& m, const Place& place)
      : OwnRamDevice{backend::RamDevice(place.device)}, PlacedOn(m, device, place) {}
};

}  // namespace sluice::engine::test
