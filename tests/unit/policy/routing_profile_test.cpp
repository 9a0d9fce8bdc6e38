// Profiles of earlier runs: they come back as written, fade, and are refused when damaged.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing_profile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "support/error_of.h"

namespace sluice::policy::test {
namespace {

RoutingProfile some_profile() {
  RoutingProfile profile(3, 5);
  std::vector<uint32_t> uses;
  for (uint64_t i = 0; i < 15; ++i) uses.push_back(static_cast<uint32_t>(random_bits(1, i) % 100));
  profile.add_run(uses, 100);
  return profile;
}

TEST(RoutingProfile, WhatIsWrittenComesBack) {
  const RoutingProfile profile = some_profile();
  EXPECT_EQ(RoutingProfile::decode(profile.encode()), profile);
  EXPECT_EQ(RoutingProfile::decode(RoutingProfile(1, 1).encode()), RoutingProfile(1, 1));
}

TEST(RoutingProfile, AnyDamageIsNoticed) {
  const std::vector<std::byte> good = some_profile().encode();
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bytes = good;
    bytes[at] ^= std::byte{0x10};
    EXPECT_THROW(RoutingProfile::decode(bytes), Error) << "byte " << at;
    EXPECT_THROW(RoutingProfile::decode(std::span(good).first(at)), Error) << at << " bytes";
  }
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_THROW(RoutingProfile::decode(longer), Error);
}

// The bytes of some_profile() with a change, and a checksum that fits it again.
template <typename T>
std::vector<std::byte> changed(size_t at, T value) {
  std::vector<std::byte> bytes = some_profile().encode();
  std::memcpy(bytes.data() + at, &value, sizeof value);
  const size_t n = bytes.size() - sizeof(uint64_t);
  const uint64_t sum = seed_of({reinterpret_cast<const char*>(bytes.data()), n}, 1);
  std::memcpy(bytes.data() + n, &sum, sizeof sum);
  return bytes;
}

// A sound checksum does not make a lie true: each check alone, behind the checksum.
TEST(RoutingProfile, NumbersThatCannotBeAreRefusedWithASoundChecksumToo) {
  constexpr size_t kVersionAt = 4, kLayersAt = 8, kExpertsAt = 12, kStepsAt = 16, kUsesAt = 24;
  const auto refused = [](const std::vector<std::byte>& bytes, const char* part) {
    const std::string text =
        sluice::test::error_of(Errc::bad_file, [&] { RoutingProfile::decode(bytes); });
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  EXPECT_EQ(RoutingProfile::decode(changed(kVersionAt, uint32_t{1})), some_profile());
  refused(changed(kVersionAt, uint32_t{2}), "version 2; expected 1");
  for (const uint32_t n : {0u, uint32_t{kMaxLayers} + 1, ~0u}) {
    refused(changed(kLayersAt, n), "expected 1 to 1024 of 1 to 4096");
  }
  for (const uint32_t n : {0u, uint32_t{kMaxExperts} + 1, ~0u}) {
    refused(changed(kExpertsAt, n), "expected 1 to 1024 of 1 to 4096");
  }
  for (const uint32_t n : {2u, 4u}) refused(changed(kLayersAt, n), "bytes; expected");
  for (const uint32_t n : {4u, 6u}) refused(changed(kExpertsAt, n), "bytes; expected");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double n : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
    refused(changed(kStepsAt, n), "negative or no numbers");
    for (const size_t at : {kUsesAt, kUsesAt + 14 * sizeof(float)}) {  // the first and the last
      refused(changed(at, static_cast<float>(n)), "negative or no numbers");
    }
  }
}

TEST(RoutingProfile, TheErrorSaysWhatToDo) {
  try {
    RoutingProfile::decode({});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file);
    EXPECT_NE(std::string(error.what()).find("delete the file"), std::string::npos);
  }
}

TEST(RoutingProfile, RatesAreUsesPerStep) {
  RoutingProfile profile(1, 2);
  EXPECT_EQ(profile.rates(), (std::vector<float>{0.0f, 0.0f}));
  profile.add_run(std::vector<uint32_t>{10, 5}, 20);
  EXPECT_EQ(profile.rates(), (std::vector<float>{0.5f, 0.25f}));
}

TEST(RoutingProfile, OldRunsFade) {
  RoutingProfile profile(1, 2);
  profile.add_run(std::vector<uint32_t>{1000000, 0}, 1000000);
  for (int run = 0; run < 20; ++run) profile.add_run(std::vector<uint32_t>{0, 5000}, 5000);
  EXPECT_LT(profile.rates()[0], 0.05f);
  EXPECT_GT(profile.rates()[1], 0.95f);
}

}  // namespace
}  // namespace sluice::policy::test
