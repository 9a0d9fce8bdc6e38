// The saver of routing profiles: in time, never twice as much, and never in a step's way.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/profile_saver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/machine/profile_file.h"
#include "support/temp_dir.h"

namespace sluice::engine {
namespace {

using policy::RoutingProfile;
using test::TempDir;
using Counts = std::vector<uint32_t>;

constexpr int kLayers = 2;
constexpr int kExperts = 2;

RoutingProfile after_runs(std::initializer_list<std::pair<Counts, uint64_t>> runs) {
  RoutingProfile profile(kLayers, kExperts);
  for (const auto& [uses, n_steps] : runs) profile.add_run(uses, n_steps);
  return profile;
}

std::optional<RoutingProfile> saved_in(const std::string& path) {
  std::string warning;
  auto profile = ProfileFile::load(path, kLayers, kExperts, &warning);
  EXPECT_EQ(warning, "");
  return profile;
}

const RoutingProfile kFresh(kLayers, kExperts);
const Counts kFew = {1, 2, 3, 0};
const Counts kMore = {5, 4, 3, 9};

TEST(ProfileSaver, HoweverOftenItSavesARunCountsOnce) {
  const TempDir dir;
  const RoutingProfile before = after_runs({{{7, 0, 8, 1}, 30'000}});  // long enough to fade
  ProfileSaver saver(dir / "p", before, 60.0);
  EXPECT_FALSE(saver.after_step(kFew, 3, 1000.0));
  EXPECT_TRUE(saver.after_step(kFew, 4, 1060.0));
  saver.wait();
  EXPECT_EQ(saved_in(dir / "p"), after_runs({{{7, 0, 8, 1}, 30'000}, {kFew, 4}}));
  for (int i = 0; i < 2; ++i) {
    saver.finish(kMore, 9);
    EXPECT_EQ(saved_in(dir / "p"), after_runs({{{7, 0, 8, 1}, 30'000}, {kMore, 9}}));
  }
  EXPECT_EQ(saver.warning(), "");
}

TEST(ProfileSaver, SavesOnceInAnInterval) {
  const TempDir dir;
  ProfileSaver saver(dir / "p", kFresh, 60.0);
  std::vector<double> saved_at;
  for (double now = 0.5; now < 200.0; now += 0.25) {
    if (saver.after_step(kFew, 1, now)) saved_at.push_back(now);
    saver.wait();
  }
  EXPECT_EQ(saved_at, (std::vector<double>{60.5, 120.5, 180.5}));
}

TEST(ProfileSaver, ARunWithoutStepsLeavesTheFileAsItIs) {
  const TempDir dir;
  ProfileSaver(dir / "p", kFresh).finish(Counts(4, 0), 0);
  EXPECT_FALSE(std::filesystem::exists(dir / "p"));
}

TEST(ProfileSaver, WithoutAPathNothingIsKept) {
  ProfileSaver saver("", kFresh, 0.0);
  EXPECT_FALSE(saver.after_step(kFew, 1, 0.0));
  saver.finish(kFew, 1);
  EXPECT_EQ(saver.warning(), "");
}

TEST(ProfileSaver, AFailedSaveIsAWarningAndIsNotTriedAgainBeforeItsTime) {
  const TempDir dir;
  ::sluice::test::write_file(dir / "blocked", "a file where a folder should be");
  ProfileSaver saver(dir / "blocked/p", kFresh, 60.0);
  saver.after_step(kFew, 1, 0.0);
  EXPECT_EQ(saver.warning(), "");
  EXPECT_TRUE(saver.after_step(kFew, 1, 60.0));
  saver.wait();
  EXPECT_EQ(saver.warning(), "the routing profile is not saved: " + (dir / "blocked/p.partial") +
                                 ": cannot be created after 0 B (Not a directory); expected a "
                                 "writable place with enough room");
  EXPECT_FALSE(saver.after_step(kFew, 1, 61.0));
  EXPECT_NE(saver.warning(), "");
  std::filesystem::remove(dir / "blocked");
  EXPECT_TRUE(saver.after_step(kFew, 1, 120.0));
  saver.wait();
  EXPECT_EQ(saver.warning(), "");
  EXPECT_EQ(saved_in(dir / "blocked/p"), after_runs({{kFew, 1}}));
}

TEST(ProfileSaver, AFullDiskLeavesTheOlderFileWhole) {
  const TempDir dir;
  const RoutingProfile before = after_runs({{kMore, 50}});
  ProfileFile::save(dir / "p", before);
  ProfileSaver saver(dir / "p", before, 60.0);
  std::filesystem::create_symlink("/dev/full", dir / "p.partial");
  saver.finish(kFew, 1);
  EXPECT_NE(saver.warning().find("No space left on device"), std::string::npos) << saver.warning();
  EXPECT_EQ(saved_in(dir / "p"), before);
}

// A pipe takes nothing until somebody reads it: a disk that hangs.
TEST(ProfileSaver, AStepDoesNotWaitForTheDisk) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  ProfileSaver saver(dir / "pipe", kFresh, 60.0);
  saver.after_step(kFew, 1, 0.0);
  EXPECT_TRUE(saver.after_step(kFew, 2, 60.0));
  EXPECT_FALSE(saver.after_step(kMore, 9, 120.0));  // the first is still under way
  const auto content = ::sluice::test::read_file(dir / "pipe");
  saver.wait();
  EXPECT_EQ(saver.warning(), "");
  EXPECT_EQ(RoutingProfile::decode(std::as_bytes(std::span(content))), after_runs({{kFew, 2}}));

  EXPECT_TRUE(saver.after_step(kFew, 3, 121.0));  // as soon as it can
  const int both_ends = ::open((dir / "pipe").c_str(), O_RDWR);
  ASSERT_GE(both_ends, 0);
  saver.finish(kMore, 10);
  auto expected = after_runs({{kFew, 3}}).encode();
  const auto last = after_runs({{kMore, 10}}).encode();
  expected.insert(expected.end(), last.begin(), last.end());
  std::vector<std::byte> got(1000);
  got.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(both_ends, got.data(), got.size()))));
  ::close(both_ends);
  EXPECT_TRUE(got == expected) << got.size() << " bytes, expected " << expected.size();
}

TEST(ProfileSaver, EndingWithoutFinishWaitsForTheSaveUnderWay) {
  const TempDir dir;
  {
    ProfileSaver saver(dir / "p", kFresh, 0.0);
    EXPECT_TRUE(saver.after_step(kFew, 1, 0.0));
  }
  EXPECT_EQ(saved_in(dir / "p"), after_runs({{kFew, 1}}));
}

}  // namespace
}  // namespace sluice::engine
