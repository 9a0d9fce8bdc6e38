// Profiles of earlier runs: they come back as written, fade, and are refused when damaged.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing_profile.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

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
