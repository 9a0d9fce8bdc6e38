// Experts on their way from the host: how many copies bring one, and how often a model's memory is
// registered with a device.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/host_experts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "backend/ram/ram_address.h"
#include "engine/device/device_steps.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using backend::LinkUse;
using backend::RamDevice;

// What crosses the link while one expert is copied into a slot.
std::vector<LinkUse> copy_one(const OpenModel& model, uint64_t pin_limit) {
  std::vector<LinkUse> uses;
  RamDevice device({.n_bytes = 16 * kMiB,
                    .pin_limit = pin_limit,
                    .before_copy = {},
                    .on_link_use = [&](const LinkUse& use) { uses.push_back(use); }});
  RegisteredExperts registered(*model, device);
  HostExperts host(registered, device, 0);
  const backend::ExpertsView& experts = (*model).layers()[1].experts;
  const backend::ExpertLayout layout(experts);
  const backend::Buffer slot = device.allocate(backend::MemoryKind::device, layout.stride);
  const auto stream = device.make_stream("copies");
  host.copy({LayerId(1), ExpertId(7)}, layout, slot.data(), *stream);
  stream->finish();
  const backend::ExpertMatrices there = layout.at(backend::host_address(slot.data()));
  const backend::ExpertMatrices here = experts.expert(7);
  for (const auto part : {&backend::ExpertMatrices::gate, &backend::ExpertMatrices::up,
                          &backend::ExpertMatrices::down}) {
    EXPECT_TRUE(std::ranges::equal(std::span((there.*part).data, (there.*part).matrix_bytes()),
                                   std::span((here.*part).data, (here.*part).matrix_bytes())));
  }
  EXPECT_EQ(uses.size(), static_cast<size_t>(host.n_copies(LayerId(1))));
  return uses;
}

TEST(HostExperts, OneCopyBringsAnExpertThatStandsInASlot) {
  constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
    const OpenModel woven("qwen3moe", mix), mapped("qwen3moe", mix, Weights::mapped);
    const uint64_t n_bytes = backend::ExpertLayout((*woven).layers()[1].experts).n_bytes;
    const std::vector<LinkUse> one = copy_one(woven, kNoLimit);
    ASSERT_EQ(one.size(), 1u) << mix;
    EXPECT_EQ(one[0].n_bytes, n_bytes);
    EXPECT_EQ(copy_one(mapped, kNoLimit).size(), 3u) << mix;
    // Nothing may be registered: through the ring, from either.
    EXPECT_EQ(copy_one(woven, 5 * n_bytes).size(), 1u) << mix;
    EXPECT_EQ(copy_one(mapped, 5 * n_bytes).size(), 1u) << mix;
  }
}

// A held link: calls to the host before and behind each copy, and no reads by the device.
TEST(HostExperts, AHeldLinkIsForCopiesAlone) {
  const OpenModel model("qwen3moe", "Q8_0");
  for (const double held_gbps : {0.0, 1000.0}) {
    std::atomic<int> n_asked = 0;
    RamDevice device(
        {.n_bytes = 16 * kMiB, .before_copy = {}, .on_submit = [&](const auto&) { ++n_asked; }});
    RegisteredExperts registered(*model, device);
    HostExperts host(registered, device, 0, /*is_needed=*/true, held_gbps);
    EXPECT_EQ(host.slots(LayerId(1)) == nullptr, held_gbps > 0.0);
    const backend::ExpertLayout layout((*model).layers()[1].experts);
    const backend::Buffer slot = device.allocate(backend::MemoryKind::device, layout.stride);
    const auto stream = device.make_stream("copies");
    host.copy({LayerId(1), ExpertId(7)}, layout, slot.data(), *stream);
    stream->finish();
    EXPECT_EQ(n_asked, held_gbps > 0.0 ? 3 : 1);
    EXPECT_EQ(std::memcmp(backend::host_address(slot.data()),
                          (*model).layers()[1].experts.expert(7).gate.data, 64),
              0);
  }
}

// The trunk's copies are the same.
TEST(HostExperts, ARuntimeMakesAThirdOfTheCopies) {
  const auto count = [](Weights weights) {
    const OpenModel model("qwen3moe", "Q8_0", weights);
    policy::RoutingProfile profile(2, 10);  // so that nine of ten are loaded first
    profile.add_run(std::vector<uint32_t>(20, 50), 100);
    std::atomic<int64_t> n_copies = 0;
    Place place{.share = 0.9, .profile = &profile};
    place.device.before_copy = [&](int64_t) { ++n_copies; };
    const Placed placed(model, place);
    EXPECT_EQ(placed.runtime.stats().n_copies, 18);
    return n_copies.load();
  };
  EXPECT_EQ(count(Weights::mapped) - count(Weights::woven), 2 * 18);
}

TEST(HostExperts, TheDeviceReadsOnlyWhatStandsInSlots) {
  const OpenModel woven("qwen3moe", "Q8_0"), mapped("qwen3moe", "Q8_0", Weights::mapped);
  const Logits expected = run_alone(*woven, text());
  for (const OpenModel* model : {&woven, &mapped}) {
    Placed placed(*model, {.share = 0.2, .link_share = 1.0});
    expect_same_bits(expected, placed.run(text()), "over the link");
    const LayerStats all = placed.runtime.stats().total();
    EXPECT_EQ(all.n_link > 0, model == &woven);
    EXPECT_EQ(all.n_cpu > 0, model == &mapped);
    EXPECT_EQ(placed.runtime.host_experts().n_registered(), 2);
  }
}

// How often each piece of memory was registered, and what of it still is.
struct Leases {
  auto watcher() {
    return [this](std::span<const std::byte> bytes, bool begins) {
      n_begun[bytes.data()] += begins;
      n_open += begins ? 1 : -1;
      sum = sum + std::to_integer<int>(bytes.front()) + std::to_integer<int>(bytes.back());
    };
  }
  std::map<const std::byte*, int> n_begun;
  int n_open = 0;
  volatile int sum = 0;  // reads what is registered: a sanitizer sees memory that is gone
};

// Two ways that are too close to tell are tried, then one of them is made.
TEST(RegisteredExperts, TrialsAndTheSessionRegisterEachLayerOnce) {
  const OpenModel model("qwen3moe", "Q8_0");
  const policy::ModelShape shape = model.shape();
  const policy::Workload work{.n_ctx = 64, .prefill_chunk = 32};
  SessionOptions options{.n_ctx = 64, .prefill_chunk = 32};
  DeviceOptions& d = options.device;
  d.kind = DeviceKind::sim;
  d.n_gpu_layers = 2;
  d.n_cpu_moe = 1;  // or all would be resident
  d.sim.is_virtual = true;
  d.sim.machine.vram_free =
      policy::price(shape, work, {2, {0, 0}, 0, 0.0}).vram.total() + shape.expert_bytes() / 2;
  d.sim.machine.link_gbps = 10.0;
  d.sim.machine.cpu_gbps = d.sim.machine.gpu_gbps = 400.0;
  d.sim.machine.handshake_us = 0.1;
  ThreadPool threads(2);
  Leases leases;
  {
    const auto driver = make_device_driver(
        {.file = model.file(),
         .model = *model,
         .threads = threads,
         .options = options,
         .reroute = {},
         .watch_device = [&](backend::RamDeviceOptions& o) { o.on_register = leases.watcher(); }});
    expect_contains(driver->placement().reason, "ways that were tried");
    ASSERT_EQ(leases.n_begun.size(), 2u);
    for (const model::Layer& layer : (*model).layers()) {
      EXPECT_EQ(leases.n_begun[layer.experts.slots], 1) << "layer " << layer.id.value;
    }
    EXPECT_EQ(leases.n_open, 2);
  }
  EXPECT_EQ(leases.n_open, 0) << "the model outlives its registration";
}

// Where only so much may be pinned, a layer that was refused is asked for again, and one that was
// granted is not; the second runtime gets what it needs besides.
TEST(RegisteredExperts, RuntimesAfterEachOtherShareWhatWasGranted) {
  const OpenModel model("qwen3moe", "Q8_0");
  const policy::ModelShape shape = model.shape();
  Place place;
  const uint64_t needed = Placed(model, place).device.pinned_bytes();
  place.device.pin_limit = needed - 5 * policy::slot_bytes(shape.layers[0]);
  Leases leases;
  place.device.on_register = leases.watcher();
  RamDevice device(place.device);
  RegisteredExperts experts(*model, device);
  ThreadPool threads(2);
  for (int i = 0; i < 3; ++i) {
    const ExpertRuntime runtime(experts, shape, device, threads, options_for(shape, place));
    EXPECT_EQ(runtime.host_experts().n_registered(), 1);
    EXPECT_TRUE(runtime.host_experts().is_copyable(LayerId(1)));
  }
  EXPECT_EQ(leases.n_begun.size(), 1u);
  EXPECT_EQ(leases.n_begun[(*model).layers()[0].experts.slots], 1);
  EXPECT_EQ(experts.slots(LayerId(0)), (*model).layers()[0].experts.slots);
  EXPECT_EQ(experts.slots(LayerId(1)), nullptr);
}

}  // namespace
}  // namespace sluice::engine::test
