// The device made of RAM, besides what every device promises (ram_promises_test.cpp): limits,
// copies that last as long as the link says, faults that tests inject; and virtual time that
// depends on the work alone.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "backend/ram/ram_address.h"
#include "base/error.h"
#include "base/units.h"
#include "support/error_of.h"

namespace sluice::backend::test {
namespace {

using namespace std::chrono_literals;
using sluice::test::error_of;

RamDeviceOptions fast(uint64_t n_bytes = 64 * kMiB) {
  return {.n_bytes = n_bytes, .link_gbps = 1000.0, .delay_us = 0.0, .before_copy = {}};
}

RamDeviceOptions virtual_clock() {
  RamDeviceOptions options = fast();
  options.link_gbps = 10.0;
  options.delay_us = 5.0;
  options.clock = Clock::virtual_time;
  return options;
}

TEST(RamDevice, MemoryEndsWhereTheDeviceDoesAndComesBack) {
  RamDevice device(fast(8 * kMiB));
  {
    const Buffer most = device.allocate(MemoryKind::device, 6 * kMiB);
    EXPECT_EQ(device.free_bytes(), 2 * kMiB);
    const std::string error =
        error_of(Errc::out_of_memory, [&] { device.allocate(MemoryKind::device, 3 * kMiB); });
    EXPECT_NE(error.find("3.00 MiB"), std::string::npos) << error;
    EXPECT_NE(error.find("2.00 MiB are free"), std::string::npos) << error;
    EXPECT_NO_THROW(device.allocate(MemoryKind::device, 2 * kMiB));
  }
  EXPECT_EQ(device.free_bytes(), 8 * kMiB);
}

TEST(RamDevice, PinnedMemoryAndRegistrationsShareALimit) {
  RamDeviceOptions options = fast();
  options.pin_limit = kMiB;
  RamDevice device(options);
  const std::vector<std::byte> memory(kMiB);
  {
    const Buffer half = device.allocate(MemoryKind::pinned, kMiB / 2);
    EXPECT_EQ(device.register_host(memory), nullptr);
    EXPECT_NE(device.register_host(std::span(memory).first(kMiB / 2)), nullptr);
    error_of(Errc::out_of_memory, [&] { device.allocate(MemoryKind::mapped, kMiB); });
  }
  const auto lease = device.register_host(memory);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->device_address(), memory.data());
}

// As of a real device: a lambda of the host in a stream's work included.
TEST(RamDeviceDeathTest, TheHostCannotFollowAddressesOfItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RamDevice device(fast());
  const Buffer own = device.allocate(MemoryKind::device, 64);
  const auto write = [&] { *const_cast<volatile std::byte*>(own.data()) = std::byte{1}; };
  EXPECT_DEATH(write(), "");
  EXPECT_DEATH(
      {
        const auto stream = device.make_stream("main");
        stream->call(write);
        stream->finish();
      },
      "");
  const Buffer mapped = device.allocate(MemoryKind::mapped, 64);
  mapped.data()[0] = std::byte{1};
}

// Two streams, but one link; and nobody is told that a copy is done before it is.
TEST(RamStream, ACopyTakesAsLongAsTheLinkSays) {
  std::vector<LinkUse> uses;
  RamDeviceOptions options = fast();
  options.link_gbps = 0.1;
  options.delay_us = 1000.0;
  options.on_link_use = [&](const LinkUse& use) { uses.push_back(use); };
  RamDevice device(options);
  const auto a = device.make_stream("a"), b = device.make_stream("b");
  std::vector<std::byte> from(kMiB), to(kMiB);
  a->copy(to.data(), from.data(), 500'000);
  b->copy(to.data() + 500'000, from.data(), 500'000);
  a->finish();
  b->finish();
  const double now = device.now();
  ASSERT_EQ(uses.size(), 2u);
  for (const LinkUse& use : uses) {
    EXPECT_NEAR(use.ends_at - use.begins_at, 0.006, 1e-6);
    EXPECT_GE(use.begins_at, use.asked_at);
    EXPECT_GE(now, use.ends_at);
  }
  EXPECT_GE(uses[1].begins_at, uses[0].ends_at);
}

TEST(RamStream, AFaultEndsItsWorkIsToldOnceAndStopsNobodyElse) {
  RamDeviceOptions options = fast();
  options.before_copy = [](int64_t n) {
    if (n == 1) throw Error(Errc::device, "the link is down");
  };
  RamDevice device(options);
  const auto stream = device.make_stream("copy"), other = device.make_stream("main");
  const auto event = device.make_event();
  std::byte a{}, b{};
  bool ran = false;
  stream->copy(&a, &b, 1);
  stream->copy(&a, &b, 1);  // fails
  stream->call([&] { ran = true; });
  stream->record(*event);
  other->wait(*event);  // must not wait for ever
  other->finish();
  const std::string error = error_of(Errc::device, [&] { stream->finish(); });
  EXPECT_EQ(error, "stream 'copy': the link is down");
  EXPECT_FALSE(ran);
  stream->call([&] { ran = true; });
  EXPECT_NO_THROW(stream->finish());
  EXPECT_TRUE(ran);
}

TEST(VirtualTime, AddsUpWhatEachStreamWouldHaveTaken) {
  RamDevice device(virtual_clock());
  const auto main = device.make_stream("main"), copies = device.make_stream("copy");
  const auto event = device.make_event();
  std::vector<std::byte> bytes(2'000'000);
  copies->copy(bytes.data(), bytes.data() + 1'000'000, 1'000'000);  // 5 us + 100 us
  copies->record(*event);
  main->call([] { RamDevice::spend(30e-6); });
  main->wait(*event);
  main->call([] { RamDevice::spend(20e-6); });
  main->finish();
  copies->finish();
  EXPECT_NEAR(RamDevice::seconds(*copies), 105e-6, 1e-12);
  EXPECT_NEAR(RamDevice::seconds(*main), 125e-6, 1e-12);
}

// 105 us of copying are over only when the host has waited for as much work.
TEST(VirtualTime, AnEventIsDoneWhenTheHostsTimeHasReachedIt) {
  RamDevice device(virtual_clock());
  const auto main = device.make_stream("main"), copies = device.make_stream("copy");
  const auto event = device.make_event();
  std::vector<std::byte> bytes(2'000'000);
  copies->copy(bytes.data(), bytes.data() + 1'000'000, 1'000'000);
  copies->record(*event);
  EXPECT_FALSE(event->is_done());
  main->call([] { RamDevice::spend(100e-6); });
  main->finish();
  EXPECT_FALSE(event->is_done());
  main->call([] { RamDevice::spend(6e-6); });
  main->finish();
  EXPECT_TRUE(event->is_done());
}

TEST(VirtualTime, DoesNotDependOnHowLongTheWorkReallyTakes) {
  double expected = 0.0;
  for (const auto pause : {0ms, 2ms}) {
    RamDevice device(virtual_clock());
    const auto main = device.make_stream("main"), copies = device.make_stream("copy");
    const auto moved = device.make_event(), used = device.make_event();
    std::vector<std::byte> bytes(200'000);
    for (int step = 0; step < 5; ++step) {
      copies->wait(*used);
      copies->copy(bytes.data(), bytes.data() + 100'000, 100'000);
      copies->record(*moved);
      main->call([&] {
        std::this_thread::sleep_for(pause);
        RamDevice::spend(12e-6);
      });
      main->wait(*moved);
      main->record(*used);
    }
    main->finish();
    const double seconds = RamDevice::seconds(*main);
    if (expected == 0.0) expected = seconds;
    EXPECT_EQ(seconds, expected);
    EXPECT_NEAR(seconds, 75e-6, 1e-12);
  }
}

}  // namespace
}  // namespace sluice::backend::test
