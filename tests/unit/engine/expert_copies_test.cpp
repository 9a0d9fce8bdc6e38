// Experts that move between host and device: what the table shows is whole whenever the device's
// work looks, whatever moves meanwhile; what has left is gone.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_copies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "backend/ram/ram_device.h"
#include "base/units.h"
#include "unit/engine/run_model.h"
#include "unit/engine/shown_slot.h"

namespace sluice::engine::test {
namespace {

using backend::Clock;
using backend::RamDevice;
using backend::RamDeviceOptions;
using policy::ExpertKey;

RamDeviceOptions device_options() {
  return {.n_bytes = 64 * kMiB, .link_gbps = 4.0, .delay_us = 2.0, .before_copy = {}};
}

// A tiny model on a device with room for some of its experts.
struct World {
  explicit World(int n_slots_per_layer, const RamDeviceOptions& options = device_options())
      : file("qwen3moe", "Q4_K_M"),
        device(options),
        cache(cache_options(n_slots_per_layer)),
        room(device, 8 * kMiB),
        tables(device, 4 * kKiB),
        slots(*file, cache, room, tables),
        registered(*file, device),
        host(registered, device, 0),
        main(device.make_stream("main")),
        stream(device.make_stream("expert copies")),
        copies(device, *main, *stream, slots, host, cache, {.poison = true}) {}

  policy::CacheOptions cache_options(int n_slots) const {
    policy::CacheOptions options{
        .policy = policy::PolicyKind::lru, .n_experts = (*file).config().n_experts, .layers = {}};
    for (const model::Layer& layer : (*file).layers()) {
      options.layers.push_back({backend::ExpertLayout(layer.experts).n_bytes, n_slots, false});
    }
    return options;
  }

  // One step that uses some experts of every layer; the moves that follow from it.
  std::span<const policy::Move> step(uint64_t seed) {
    cache.begin_step(policy::Phase::decode);
    for (int layer = 0; layer < n_layers(); ++layer) {
      std::vector<policy::RoutedExpert> routed;
      for (uint64_t k = 0; k < 3; ++k) {
        const auto e = static_cast<int>(random_bits(seed * 10 + k, uint64_t(layer)) % 5 + 3 * k);
        if (e < n_experts()) routed.push_back({ExpertId(e), 0.3f});
      }
      std::ranges::sort(routed, {}, [](const auto& r) { return r.expert.value; });
      const auto twins = std::ranges::unique(routed, {}, &policy::RoutedExpert::expert);
      routed.erase(twins.begin(), twins.end());
      cache.touch(LayerId(layer), routed);
    }
    return cache.end_step();
  }

  int n_layers() const { return static_cast<int>((*file).layers().size()); }
  int n_experts() const { return (*file).config().n_experts; }

  // By work of the device: how many experts the table shows, and how many of them are not whole.
  void look(int& n_shown, int& n_broken) {
    slots.write_changes(*main);
    main->call([this, &n_shown, &n_broken] {
      n_shown = 0;
      for (int layer = 0; layer < n_layers(); ++layer) {
        for (int e = 0; e < n_experts(); ++e) {
          std::byte* const slot = shown_slot(slots, LayerId(layer), e);
          if (!slot) continue;
          ++n_shown;
          n_broken += !holds(slot, {LayerId(layer), ExpertId(e)});
        }
      }
    });
  }

  bool holds(const std::byte* slot, ExpertKey key) const {
    const backend::ExpertMatrices there = slots.layout(key.layer).at(slot);
    const backend::ExpertMatrices here =
        (*file).layers()[static_cast<size_t>(key.layer.value)].experts.expert(key.expert.value);
    const auto same = [](const backend::WeightView& a, const backend::WeightView& b) {
      return std::memcmp(a.data, b.data, a.matrix_bytes()) == 0;
    };
    return same(there.gate, here.gate) && same(there.up, here.up) && same(there.down, here.down);
  }

  // A place in the device's memory that holds an expert.
  std::byte* landing(size_t i, ExpertKey key) {
    const backend::ExpertLayout& layout = slots.layout(key.layer);
    uint64_t most = 0;
    for (int l = 0; l < n_layers(); ++l) most = std::max(most, slots.layout(LayerId(l)).n_bytes);
    while (places.size() <= i) places.push_back(room.take(policy::slot_bytes(most)));
    host.copy(key, layout, places[i], *main);
    return places[i];
  }

  OpenModel file;
  RamDevice device;
  policy::ExpertCache cache;
  DeviceBlock room, tables;
  ExpertSlots slots;
  RegisteredExperts registered;
  HostExperts host;
  std::unique_ptr<backend::Stream> main, stream;
  ExpertCopies copies;
  std::vector<std::byte*> places;
};

TEST(ExpertCopies, AtFirstTheTableIsEmpty) {
  World world(4);
  int n_shown = -1, n_broken = 0;
  world.look(n_shown, n_broken);
  world.main->finish();
  EXPECT_EQ(n_shown, 0);
}

TEST(ExpertCopies, WhatIsToBeThereAtTheStartIsThere) {
  World world(10);
  world.copies.boundary(world.cache.fill(nullptr));
  world.copies.boundary(world.step(1));
  world.copies.finish();
  int n_shown = 0, n_broken = 0;
  world.look(n_shown, n_broken);
  world.main->finish();
  EXPECT_GT(n_shown, 0);
  EXPECT_EQ(n_broken, 0);
  EXPECT_GT(world.copies.copied_bytes(), 0u);
}

// Copies last several steps, slots change hands again and again, and work looks all the time.
TEST(ExpertCopies, WhatTheTableShowsIsWholeWhateverMoves) {
  World world(3);
  int n_shown = 0, n_broken = 0, n_seen = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    for (int again = 0; again < 3; ++again) world.look(n_shown, n_broken);
    world.copies.boundary(world.step(i / 20));
    world.look(n_shown, n_broken);  // while the moves are made
    if (i % 20 == 19) {             // however slow this machine is, some arrive
      world.copies.finish();
      world.look(n_shown, n_broken);
    }
    world.main->finish();
    n_seen = std::max(n_seen, n_shown);
  }
  EXPECT_EQ(n_broken, 0);
  EXPECT_GT(n_seen, 2);
}

// The proof that the test above can fail: a slot written while it is in the table.
TEST(ExpertCopies, AByteThatChangesInASlotIsSeen) {
  World world(4);
  world.copies.boundary(world.step(1));
  world.copies.finish();
  int n_shown = 0, n_broken = 0;
  world.slots.write_changes(*world.main);
  world.main->call([&] {
    for (int e = 0; e < world.n_experts(); ++e) {
      std::byte* const slot = shown_slot(world.slots, LayerId(0), e);
      if (slot) slot[5] ^= std::byte{1};
    }
  });
  world.look(n_shown, n_broken);
  world.main->finish();
  EXPECT_GT(n_broken, 0);
}

TEST(ExpertCopies, WhatHasLeftIsPoisoned) {
  World world(1);
  world.copies.boundary(world.step(1));
  world.copies.finish();
  const std::byte* first = nullptr;
  int first_expert = -1;
  world.slots.write_changes(*world.main);
  world.main->call([&] {
    for (int e = 0; e < world.n_experts(); ++e) {
      if (const std::byte* slot = shown_slot(world.slots, LayerId(0), e)) {
        first = slot, first_expert = e;
      }
    }
  });
  world.main->finish();
  ASSERT_NE(first, nullptr);
  for (uint64_t seed = 2; seed < 50; ++seed) {
    world.copies.boundary(world.step(seed));
    world.copies.finish();
    if (!world.cache.resident(LayerId(0), ExpertId(first_expert))) break;
  }
  ASSERT_FALSE(world.cache.resident(LayerId(0), ExpertId(first_expert)));
  world.slots.write_changes(*world.main);
  world.main->finish();
  EXPECT_EQ(shown_slot(world.slots, LayerId(0), first_expert), nullptr);
  EXPECT_FALSE(world.holds(first, {LayerId(0), ExpertId(first_expert)}));
}

TEST(ExpertCopies, AFailedCopyIsToldAndShowsNothingBroken) {
  RamDeviceOptions options = device_options();
  options.before_copy = [](int64_t n) {
    if (n == 4) throw Error(Errc::device, "the link is down");
  };
  World world(4, options);
  world.copies.boundary(world.step(1));
  EXPECT_THROW(world.copies.finish(), Error);
}

// In virtual time the table changes at the same steps in every run.
TEST(ExpertCopies, InVirtualTimeTwoRunsShowTheSameAtEveryStep) {
  const auto run = [] {
    RamDeviceOptions options = device_options();
    options.clock = Clock::virtual_time;
    World world(3, options);
    std::vector<int> shown;
    for (uint64_t i = 0; i < 60; ++i) {
      int n_shown = 0, n_broken = 0;
      world.main->call([] { RamDevice::spend(40e-6); });
      world.look(n_shown, n_broken);
      world.main->finish();
      EXPECT_EQ(n_broken, 0);
      shown.push_back(n_shown);
      world.copies.boundary(world.step(i / 4));
    }
    return shown;
  };
  const std::vector<int> first = run();
  EXPECT_GT(std::ranges::max(first), 2);
  EXPECT_EQ(first, run());
}

// Work that is under way finds the table as it was when the work was asked for, and the experts it
// shows whole, however many moves the host has ordered meanwhile.
TEST(ExpertCopies, TheTableChangesWhenTheTurnOfTheMainStreamComes) {
  World world(2);
  world.copies.boundary(world.step(1));
  world.copies.finish();
  std::atomic<bool> may_look = false;
  int n_shown = 0, n_broken = 0, n_before = 0;
  world.look(n_before, n_broken);
  world.main->finish();
  ASSERT_GT(n_before, 0);

  world.main->call([&] {
    while (!may_look) std::this_thread::yield();
  });
  world.look(n_shown, n_broken);
  bool evicts = false;
  for (uint64_t seed = 2; seed < 40 && !evicts; ++seed) {
    const auto moves = world.step(seed);
    evicts = std::ranges::any_of(moves, &policy::Move::evicts);
    world.copies.boundary(moves);
  }
  ASSERT_TRUE(evicts);
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time for copies that do not wait
  may_look = true;
  world.main->finish();
  EXPECT_EQ(n_shown, n_before);
  EXPECT_EQ(n_broken, 0);
}

TEST(ExpertCopies, WhatHasArrivedIsShownWhenTheTurnOfTheMainStreamComes) {
  World world(4);
  world.copies.boundary(world.step(1));
  world.stream->finish();  // all have arrived
  std::atomic<bool> may_look = false;
  int n_shown = -1, n_later = 0, n_broken = 0;
  world.main->call([&] {
    while (!may_look) std::this_thread::yield();
  });
  world.look(n_shown, n_broken);
  world.copies.boundary({});
  world.look(n_later, n_broken);
  may_look = true;
  world.main->finish();
  EXPECT_EQ(n_shown, 0);
  EXPECT_GT(n_later, 0);
  EXPECT_EQ(n_broken, 0);
}

// An expert that the step just done has read stands somewhere in the device's memory.
TEST(ExpertCopies, WhatHasLandedCrossesNoLinkAndIsThereAtTheNextStep) {
  World world(3);
  int n_shown = 0, n_broken = 0;
  int64_t n_wanted = 0, n_found = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    std::vector<ExpertKey> landed;
    const auto find = [&](ExpertKey key) -> const std::byte* {
      if (key.expert.value % 3 == 0) return nullptr;  // which was not read
      landed.push_back(key);
      return world.landing(landed.size() - 1, key);
    };
    const auto moves = world.step(i);
    n_wanted += std::ssize(moves);
    world.copies.boundary(moves, {.staged = {}, .landed = find});
    n_found += std::ssize(landed);
    for (const ExpertKey key : landed) {
      EXPECT_NE(world.slots.published(key), nullptr) << "step " << i;
    }
    world.look(n_shown, n_broken);
    world.main->finish();
    world.stream->finish();  // a slot that is still written takes nothing that has landed
    EXPECT_EQ(n_broken, 0) << "step " << i;
  }
  EXPECT_GT(n_found, n_wanted / 3);
  EXPECT_EQ(world.copies.n_landed(), n_found);
  EXPECT_EQ(world.copies.n_copies(), n_wanted - n_found);
}

TEST(ExpertCopies, WhatLandedBeforeAStepThatFailedComesOverTheLink) {
  World world(3);
  const auto moves = world.step(1);
  size_t n = 0;
  world.copies.boundary(
      moves, {.staged = {}, .landed = [&](ExpertKey) { return world.landing(n++, {}); }});
  ASSERT_EQ(world.copies.n_landed(), std::ssize(moves));  // each with another expert's bytes
  world.copies.doubt_landed();
  world.copies.boundary({});
  world.copies.finish();
  int n_shown = 0, n_broken = 0;
  world.look(n_shown, n_broken);
  world.main->finish();
  EXPECT_EQ(n_shown, std::ssize(moves));
  EXPECT_EQ(n_broken, 0);
}

// With room for one copy at a time moves wait, are overtaken by later ones, and turn back.
TEST(ExpertCopies, MovesThatWaitLeaveTheTableWholeAndComeToTheSameEnd) {
  for (const int n_slots : {1, 2, 4}) {
    World world(n_slots);
    for (uint64_t i = 1; i <= 200; ++i) {
      world.copies.boundary(world.step(i), {}, /*max_bytes=*/1);
      int n_shown = 0, n_broken = 0;
      world.look(n_shown, n_broken);
      world.main->finish();
      EXPECT_EQ(n_broken, 0);
      EXPECT_LE(n_shown, world.n_layers() * n_slots);
    }
    world.copies.boundary({});
    world.copies.finish();
    for (int layer = 0; layer < world.n_layers(); ++layer) {
      for (int e = 0; e < world.n_experts(); ++e) {
        const ExpertKey key{LayerId(layer), ExpertId(e)};
        EXPECT_EQ(world.slots.published(key) != nullptr,
                  world.cache.resident(key.layer, key.expert))
            << n_slots << " slots, layer " << layer << ", expert " << e;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::engine::test
