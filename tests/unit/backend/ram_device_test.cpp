// The device made of RAM: work in order and beside the host, memory that ends, copies that last as
// long as the link says, faults that are told of; and virtual time that depends on the work alone.
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

namespace sluice::backend::test {
namespace {

using namespace std::chrono_literals;

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

std::string error_of(Errc code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
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

TEST(RamDevice, ABufferMayOutliveTheDevice) {
  auto device = std::make_unique<RamDevice>(fast());
  Buffer buffer = device->allocate(MemoryKind::device, kMiB);
  device.reset();
  host_address(buffer.data())[0] = std::byte{1};
  buffer = {};
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

TEST(RamStream, WorksInOrderWhileTheHostGoesOn) {
  RamDevice device(fast());
  const auto stream = device.make_stream("main");
  std::atomic<bool> may_go = false;
  std::vector<int> order;
  stream->call([&] {
    while (!may_go) std::this_thread::yield();
    order.push_back(1);
  });
  stream->call([&] { order.push_back(2); });
  may_go = true;  // reached: the calls above returned before their work was done
  stream->finish();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(RamStream, CopiesBytesAsTheyAreWhenItsTurnComes) {
  RamDevice device(fast());
  const auto stream = device.make_stream("copy");
  const Buffer own = device.allocate(MemoryKind::device, 4);
  std::vector<std::byte> from(4, std::byte{1}), back(4);
  stream->call([&] { from[2] = std::byte{7}; });
  stream->copy(own.data(), from.data(), 4);
  stream->copy(back.data(), own.data(), 4);
  stream->finish();
  EXPECT_EQ(back, (std::vector{std::byte{1}, std::byte{1}, std::byte{7}, std::byte{1}}));
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

// What varies is data that the work reads: a value that was kept would come again.
TEST(RamStream, ARecordingReadsItsDataAtEveryReplay) {
  RamDevice device(fast());
  const auto stream = device.make_stream("main");
  const Buffer position = device.allocate(MemoryKind::mapped, 4);
  const Buffer own = device.allocate(MemoryKind::device, 4);
  const Buffer out = device.allocate(MemoryKind::mapped, 4);
  int n_calls = 0;
  stream->begin_recording();
  stream->copy(own.data(), position.data(), 4);
  stream->call([&] { ++n_calls; });
  stream->copy(out.data(), own.data(), 4);
  const auto recording = stream->end_recording();
  stream->finish();
  EXPECT_EQ(n_calls, 0);  // kept, not done
  for (int32_t i = 1; i <= 3; ++i) {
    *position.as<int32_t>() = 100 * i;
    stream->replay(*recording);
    stream->finish();
    EXPECT_EQ(*out.as<int32_t>(), 100 * i);
    EXPECT_EQ(n_calls, i);
  }
}

TEST(RamStream, AFaultInARecordingEndsThatReplayAlone) {
  RamDevice device(fast());
  const auto stream = device.make_stream("main");
  int n_before = 0, n_behind = 0;
  stream->begin_recording();
  stream->call([&] {
    if (n_before++ == 0) throw Error(Errc::device, "broken");
  });
  stream->call([&] { ++n_behind; });
  const auto recording = stream->end_recording();
  stream->replay(*recording);
  EXPECT_EQ(error_of(Errc::device, [&] { stream->finish(); }), "stream 'main': broken");
  EXPECT_EQ(n_behind, 0);
  stream->replay(*recording);
  stream->finish();
  EXPECT_EQ(n_behind, 1);
}

TEST(RamStream, WaitsForTheEventsOfOthers) {
  RamDevice device(fast());
  const auto first = device.make_stream("first"), second = device.make_stream("second");
  const auto event = device.make_event();
  EXPECT_TRUE(event->is_done());
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> is_written = false;
    bool was_written = false;
    first->call([&] {
      std::this_thread::yield();
      is_written = true;
    });
    first->record(*event);
    second->wait(*event);
    second->call([&] { was_written = is_written; });
    second->finish();
    EXPECT_TRUE(was_written);
    EXPECT_TRUE(event->is_done());
  }
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

// The host may already wait when the last of the work is passed over.
TEST(RamStream, FinishesHoweverItsWorkIsPassedOver) {
  RamDevice device(fast());
  const auto stream = device.make_stream("s");
  for (int i = 0; i < 300; ++i) {
    stream->call([] { throw Error(Errc::device, "broken"); });
    for (int k = 0; k < i % 7; ++k) stream->call([] {});
    EXPECT_THROW(stream->finish(), Error);
  }
}

TEST(RamStream, EndsAfterItsWork) {
  std::atomic<int> n_done = 0;
  {
    RamDevice device(fast());
    const auto stream = device.make_stream("main");
    for (int i = 0; i < 10; ++i) stream->call([&] { ++n_done; });
  }
  EXPECT_EQ(n_done, 10);
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
