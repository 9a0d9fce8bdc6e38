// What every device promises (backend/device.h), as tests that run for each of them: work in order
// and beside the host, events between streams, words, recordings that read their data anew, faults
// that are told once, memory that ends with numbers.
//
// A maker has `static std::unique_ptr<Device> make()`; null where the machine has no such device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backend/device.h"
#include "base/units.h"
#include "support/error_of.h"

namespace sluice::backend::test {

using sluice::test::error_of;

template <typename Maker>
class DevicePromises : public testing::Test {
 protected:
  void SetUp() override {
    device = Maker::make();
    if (!device) GTEST_SKIP() << "this machine has no such device";
    stream = device->make_stream("main");
  }

  // Bytes of the device's own memory, after all that was asked of the stream.
  std::vector<std::byte> bytes_of(const Buffer& own) {
    const Buffer seen = device->allocate(MemoryKind::pinned, own.n_bytes());
    stream->copy(seen.data(), own.data(), own.n_bytes());
    stream->finish();
    return {seen.data(), seen.data() + seen.n_bytes()};
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};
TYPED_TEST_SUITE_P(DevicePromises);

// A minute without it is a fault, however busy the machine is.
inline bool comes_true(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

inline std::vector<std::byte> numbered_bytes(size_t n, int first) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + size_t(first));
  return bytes;
}

TYPED_TEST_P(DevicePromises, WorksInOrderWhileTheHostGoesOn) {
  std::atomic<bool> may_go = false;
  std::vector<int> order;
  this->stream->call([&] {
    while (!may_go) std::this_thread::yield();
    order.push_back(1);
  });
  this->stream->call([&] { order.push_back(2); });
  may_go = true;  // reached: the calls above returned before their work was done
  this->stream->finish();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TYPED_TEST_P(DevicePromises, CopiesBytesAsTheyAreWhenItsTurnComes) {
  const Buffer own = this->device->allocate(MemoryKind::device, 4);
  const Buffer from = this->device->allocate(MemoryKind::pinned, 4);
  const Buffer back = this->device->allocate(MemoryKind::pinned, 4);
  std::fill_n(from.data(), 4, std::byte{1});
  this->stream->call([&] { from.data()[2] = std::byte{7}; });
  this->stream->copy(own.data(), from.data(), 4);
  this->stream->copy(back.data(), own.data(), 4);
  this->stream->finish();
  const std::vector<std::byte> got(back.data(), back.data() + 4);
  EXPECT_EQ(got, (std::vector{std::byte{1}, std::byte{1}, std::byte{7}, std::byte{1}}));
}

TYPED_TEST_P(DevicePromises, CopiesMuchBetweenItsOwnPlacesAndTheHosts) {
  const std::vector<std::byte> bytes = numbered_bytes(5'000'001, 1);
  const Buffer a = this->device->allocate(MemoryKind::device, bytes.size());
  const Buffer b = this->device->allocate(MemoryKind::device, bytes.size());
  this->stream->copy(a.data(), bytes.data(), bytes.size());
  this->stream->copy(b.data(), a.data(), bytes.size());
  EXPECT_EQ(this->bytes_of(b), bytes);
}

TYPED_TEST_P(DevicePromises, FillsWithOneByte) {
  const Buffer own = this->device->allocate(MemoryKind::device, 1000);
  this->stream->fill(own.data(), std::byte{0xA5}, 1000);
  this->stream->fill(own.data() + 3, std::byte{0}, 5);
  std::vector<std::byte> want(1000, std::byte{0xA5});
  std::fill_n(want.begin() + 3, 5, std::byte{0});
  EXPECT_EQ(this->bytes_of(own), want);
}

// The bytes are gone from the caller's place before the stream gets to them: it is busy. (No call
// to the host holds it up: under a sanitizer a launch waits for what stands before it.)
TYPED_TEST_P(DevicePromises, KeepsTheBytesThatItWrites) {
  std::vector<std::byte> want(20'000);
  const Buffer own = this->device->allocate(MemoryKind::device, want.size());
  this->stream->fill(own.data(), std::byte{0}, want.size());
  const Buffer much = this->device->allocate(MemoryKind::device, 32 * kMiB);
  for (int i = 0; i < 10; ++i) this->stream->fill(much.data(), std::byte{1}, much.n_bytes());
  size_t at = 1;  // at any address
  for (const size_t n : {8, 1, 3, 64, 1023, 1024, 1025, 4096, 5000, 8}) {
    std::vector<std::byte> value = numbered_bytes(n, static_cast<int>(at));
    std::ranges::copy(value, want.begin() + static_cast<std::ptrdiff_t>(at));
    this->stream->write(own.data() + at, value);
    std::ranges::fill(value, std::byte{0xFF});
    at += n + 2;
  }
  EXPECT_EQ(this->bytes_of(own), want);
}

TYPED_TEST_P(DevicePromises, AWordTellsThatAllBeforeItIsDone) {
  constexpr size_t kBytes = 1'000'000;
  const Buffer word = this->device->allocate(MemoryKind::mapped, 8);
  const Buffer own = this->device->allocate(MemoryKind::device, kBytes);
  const Buffer out = this->device->allocate(MemoryKind::mapped, kBytes);
  EXPECT_EQ(this->device->read(word.template as<uint64_t>()), 0u);
  for (uint64_t round = 1; round <= 50; ++round) {
    const uint64_t value = round << 40 | round;
    this->stream->fill(own.data(), static_cast<std::byte>(round), kBytes);
    this->stream->copy(out.data(), own.data(), kBytes);
    this->stream->set(word.template as<uint64_t>(), value);
    ASSERT_TRUE(
        comes_true([&] { return this->device->read(word.template as<uint64_t>()) == value; }));
    for (size_t i = 0; i < kBytes; i += 997) ASSERT_EQ(out.data()[i], std::byte(round)) << i;
    ASSERT_EQ(out.data()[kBytes - 1], static_cast<std::byte>(round));
  }
  this->stream->finish();
}

// The second stream's copy would bring zeros if it did not wait.
TYPED_TEST_P(DevicePromises, AStreamAwaitsAWordThatAnotherSets) {
  constexpr size_t kBytes = 1'000'000;
  const auto other = this->device->make_stream("other");
  const Buffer words = this->device->allocate(MemoryKind::mapped, 16);
  std::fill_n(words.data(), 16, std::byte{0});
  auto* const word = words.template as<uint64_t>();
  const Buffer from = this->device->allocate(MemoryKind::device, kBytes);
  const Buffer to = this->device->allocate(MemoryKind::device, kBytes);
  for (uint64_t round = 1; round <= 20; ++round) {
    other->await(word, round << 33, word + 1);
    other->copy(to.data(), from.data(), kBytes);
    this->stream->fill(from.data(), static_cast<std::byte>(round), kBytes);
    this->stream->set(word, round << 33);
    other->finish();
    EXPECT_EQ(this->bytes_of(to), std::vector<std::byte>(kBytes, static_cast<std::byte>(round)));
  }
}

TYPED_TEST_P(DevicePromises, AWaitForAWordEndsWhenTheHostSaysSo) {
  const Buffer words = this->device->allocate(MemoryKind::mapped, 16);
  std::fill_n(words.data(), 16, std::byte{0});
  auto* const word = words.template as<uint64_t>();
  const auto event = this->device->make_event();
  this->stream->await(word, 7, word + 1);
  this->stream->record(*event);
  std::atomic_ref(word[1]).store(1, std::memory_order_release);
  this->stream->finish();
  EXPECT_TRUE(event->is_done());
}

// What varies is data that the work reads: a value that was kept would come again.
TYPED_TEST_P(DevicePromises, ARecordingReadsItsDataAtEveryReplay) {
  const Buffer position = this->device->allocate(MemoryKind::mapped, 4);
  const Buffer own = this->device->allocate(MemoryKind::device, 4);
  const Buffer out = this->device->allocate(MemoryKind::mapped, 4);
  int n_calls = 0;
  this->stream->begin_recording();
  this->stream->copy(own.data(), position.data(), 4);
  this->stream->call([&] { ++n_calls; });
  this->stream->copy(out.data(), own.data(), 4);
  const auto recording = this->stream->end_recording();
  this->stream->finish();
  EXPECT_EQ(n_calls, 0);  // kept, not done
  for (int32_t i = 1; i <= 3; ++i) {
    *position.template as<int32_t>() = 100 * i;
    this->stream->replay(*recording);
    this->stream->finish();
    EXPECT_EQ(*out.template as<int32_t>(), 100 * i);
    EXPECT_EQ(n_calls, i);
  }
}

// Small and large copies, from and to places of any alignment; what stands behind them stays.
TYPED_TEST_P(DevicePromises, ARecordingCopiesAnyNumberOfBytes) {
  constexpr size_t kMost = (1 << 20) + 64;
  const Buffer from = this->device->allocate(MemoryKind::mapped, kMost);
  const Buffer own = this->device->allocate(MemoryKind::device, kMost);
  for (const size_t n : {1, 15, 16, 17, 1000, 4096, 20'011, 1 << 20, (1 << 20) + 1}) {
    for (const size_t at : {0, 16, 5}) {
      const std::vector<std::byte> bytes = numbered_bytes(kMost, static_cast<int>(n + at));
      this->stream->begin_recording();
      this->stream->copy(own.data() + at, from.data() + at, n);
      const auto recording = this->stream->end_recording();
      std::ranges::copy(bytes, from.data());
      this->stream->fill(own.data(), std::byte{9}, kMost);
      this->stream->replay(*recording);
      std::vector<std::byte> want(kMost, std::byte{9});
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n,
                  want.begin() + static_cast<std::ptrdiff_t>(at));
      EXPECT_TRUE(this->bytes_of(own) == want) << n << " bytes from " << at << " on";
    }
  }
}

// Fills, written bytes and words are part of it as well, each time again.
TYPED_TEST_P(DevicePromises, ARecordingHoldsAllKindsOfWork) {
  const Buffer own = this->device->allocate(MemoryKind::device, 16);
  const Buffer word = this->device->allocate(MemoryKind::mapped, 8);
  this->stream->begin_recording();
  this->stream->fill(own.data(), std::byte{9}, 16);
  {
    const std::vector<std::byte> value = numbered_bytes(4, 30);
    this->stream->write(own.data() + 2, value);
  }
  this->stream->set(word.template as<uint64_t>(), 77);
  const auto recording = this->stream->end_recording();
  std::vector<std::byte> want(16, std::byte{9});
  std::ranges::copy(numbered_bytes(4, 30), want.begin() + 2);
  for (int i = 0; i < 2; ++i) {
    this->stream->fill(own.data(), std::byte{0}, 16);
    this->stream->set(word.template as<uint64_t>(), 1);
    this->stream->replay(*recording);
    EXPECT_EQ(this->bytes_of(own), want);
    EXPECT_EQ(this->device->read(word.template as<uint64_t>()), 77u);
  }
}

TYPED_TEST_P(DevicePromises, AFaultInARecordingEndsThatReplayAlone) {
  const Buffer word = this->device->allocate(MemoryKind::mapped, 8);
  int n_before = 0, n_behind = 0;
  this->stream->begin_recording();
  this->stream->call([&] {
    if (n_before++ == 0) throw Error(Errc::device, "broken");
  });
  this->stream->call([&] { ++n_behind; });
  this->stream->set(word.template as<uint64_t>(), 5);
  const auto recording = this->stream->end_recording();
  this->stream->replay(*recording);
  EXPECT_EQ(error_of(Errc::device, [&] { this->stream->finish(); }), "stream 'main': broken");
  EXPECT_EQ(n_behind, 0);
  EXPECT_EQ(this->device->read(word.template as<uint64_t>()), 0u);
  this->stream->replay(*recording);
  this->stream->finish();
  EXPECT_EQ(n_behind, 1);
  EXPECT_EQ(this->device->read(word.template as<uint64_t>()), 5u);
}

TYPED_TEST_P(DevicePromises, WaitsForTheEventsOfOthers) {
  const auto second = this->device->make_stream("second");
  const auto event = this->device->make_event();
  EXPECT_TRUE(event->is_done());
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> is_written = false;
    bool was_written = false;
    this->stream->call([&] {
      std::this_thread::yield();
      is_written = true;
    });
    this->stream->record(*event);
    second->wait(*event);
    second->call([&] { was_written = is_written; });
    second->finish();
    EXPECT_TRUE(was_written);
    EXPECT_TRUE(event->is_done());
  }
}

TYPED_TEST_P(DevicePromises, AnEventIsNotDoneBeforeTheWorkAheadOfIt) {
  const auto event = this->device->make_event();
  std::atomic<bool> may_go = false;
  this->stream->call([&] {
    while (!may_go) std::this_thread::yield();
  });
  this->stream->record(*event);
  EXPECT_FALSE(event->is_done());
  may_go = true;
  EXPECT_TRUE(comes_true([&] { return event->is_done(); }));
  this->stream->finish();
}

TYPED_TEST_P(DevicePromises, AFaultEndsItsWorkIsToldOnceAndStopsNobodyElse) {
  const auto other = this->device->make_stream("other");
  const auto event = this->device->make_event();
  const Buffer word = this->device->allocate(MemoryKind::mapped, 8);
  const Buffer own = this->device->allocate(MemoryKind::device, 4);
  this->stream->fill(own.data(), std::byte{1}, 4);
  bool ran = false;
  this->stream->call([] { throw Error(Errc::device, "the link is down"); });
  this->stream->call([&] { ran = true; });
  this->stream->write(own.data(), numbered_bytes(4, 50));
  this->stream->set(word.template as<uint64_t>(), 3);
  this->stream->record(*event);
  other->wait(*event);  // must not wait for ever
  other->finish();
  EXPECT_TRUE(this->stream->has_failed());
  EXPECT_FALSE(other->has_failed());
  EXPECT_EQ(error_of(Errc::device, [&] { this->stream->finish(); }),
            "stream 'main': the link is down");
  EXPECT_FALSE(this->stream->has_failed());
  EXPECT_FALSE(ran);
  EXPECT_EQ(this->device->read(word.template as<uint64_t>()), 0u);
  EXPECT_EQ(this->bytes_of(own), std::vector<std::byte>(4, std::byte{1}));
  this->stream->call([&] { ran = true; });
  EXPECT_NO_THROW(this->stream->finish());
  EXPECT_TRUE(ran);
}

// The host may already wait when the last of the work is passed over.
TYPED_TEST_P(DevicePromises, FinishesHoweverItsWorkIsPassedOver) {
  for (int i = 0; i < 300; ++i) {
    this->stream->call([] { throw Error(Errc::device, "broken"); });
    for (int k = 0; k < i % 7; ++k) this->stream->call([] {});
    EXPECT_THROW(this->stream->finish(), Error);
  }
}

TYPED_TEST_P(DevicePromises, AStreamEndsAfterItsWork) {
  std::atomic<int> n_done = 0;
  for (int i = 0; i < 10; ++i) this->stream->call([&] { ++n_done; });
  this->stream.reset();
  this->device.reset();
  EXPECT_EQ(n_done, 10);
}

TYPED_TEST_P(DevicePromises, MemoryEndsWithNumbersAndComesBack) {
  const uint64_t n_free = this->device->free_bytes();
  {
    const Buffer half = this->device->allocate(MemoryKind::device, n_free / 2);
    EXPECT_LE(this->device->free_bytes(), n_free - n_free / 2);
    const uint64_t n_left = this->device->free_bytes();
    const std::string error =
        error_of(Errc::out_of_memory, [&] { this->device->allocate(MemoryKind::device, n_free); });
    EXPECT_NE(error.find(format_bytes(n_free)), std::string::npos) << error;
    EXPECT_NE(error.find(format_bytes(n_left) + " are free"), std::string::npos) << error;
  }
  EXPECT_GE(this->device->free_bytes(), n_free);
  const Buffer again = this->device->allocate(MemoryKind::device, n_free / 2);
  this->stream->fill(again.data(), std::byte{1}, 1000);
  EXPECT_NO_THROW(this->stream->finish());
}

TYPED_TEST_P(DevicePromises, ABufferMayOutliveTheDevice) {
  Buffer buffer = this->device->allocate(MemoryKind::device, kMiB);
  Buffer mapped = this->device->allocate(MemoryKind::mapped, kMiB);
  this->stream.reset();
  this->device.reset();
  mapped.data()[0] = std::byte{1};
  buffer = {};
  mapped = {};
}

TYPED_TEST_P(DevicePromises, CopiesFromRegisteredMemory) {
  const std::vector<std::byte> bytes = numbered_bytes(3 * kMiB, 4);
  const Buffer own = this->device->allocate(MemoryKind::device, bytes.size());
  for (int round = 0; round < 2; ++round) {  // the second time after it was given back
    const auto lease = this->device->register_host(bytes);
    ASSERT_NE(lease, nullptr);
    EXPECT_NE(lease->device_address(), nullptr);
    this->stream->fill(own.data(), std::byte{0}, bytes.size());
    this->stream->copy(own.data(), bytes.data(), bytes.size());
    EXPECT_EQ(this->bytes_of(own), bytes);
  }
}

REGISTER_TYPED_TEST_SUITE_P(DevicePromises, WorksInOrderWhileTheHostGoesOn,
                            CopiesBytesAsTheyAreWhenItsTurnComes,
                            CopiesMuchBetweenItsOwnPlacesAndTheHosts, FillsWithOneByte,
                            KeepsTheBytesThatItWrites, AWordTellsThatAllBeforeItIsDone,
                            AStreamAwaitsAWordThatAnotherSets, AWaitForAWordEndsWhenTheHostSaysSo,
                            ARecordingReadsItsDataAtEveryReplay, ARecordingCopiesAnyNumberOfBytes,
                            ARecordingHoldsAllKindsOfWork, AFaultInARecordingEndsThatReplayAlone,
                            WaitsForTheEventsOfOthers, AnEventIsNotDoneBeforeTheWorkAheadOfIt,
                            AFaultEndsItsWorkIsToldOnceAndStopsNobodyElse,
                            FinishesHoweverItsWorkIsPassedOver, AStreamEndsAfterItsWork,
                            MemoryEndsWithNumbersAndComesBack, ABufferMayOutliveTheDevice,
                            CopiesFromRegisteredMemory);

}  // namespace sluice::backend::test
