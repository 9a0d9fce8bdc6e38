// Routing profiles on disk: what is kept comes back, what is damaged is said and left out, and a
// save that fails leaves the older file whole.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/profile_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>
#include <thread>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace sluice::engine {
namespace {

using policy::RoutingProfile;
using test::TempDir;

RoutingProfile profile_of(int n_layers, int n_experts, uint64_t n_steps = 100) {
  RoutingProfile profile(n_layers, n_experts);
  std::vector<uint32_t> uses(static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts));
  std::iota(uses.begin(), uses.end(), 1u);
  profile.add_run(uses, n_steps);
  return profile;
}

std::string text_of(const RoutingProfile& profile) {
  const std::vector<std::byte> bytes = profile.encode();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// That of loading a profile of 2 layers of 3 experts, which must come to nothing.
std::string warning_for(const std::string& path) {
  std::string warning;
  EXPECT_FALSE(ProfileFile::load(path, 2, 3, &warning)) << path;
  EXPECT_EQ(warning.find('\n'), std::string::npos) << warning;
  return warning;
}

TEST(ProfileFile, WhatWasSavedComesBack) {
  const TempDir dir;
  std::string warning;
  for (const auto& profile : {profile_of(48, 128), profile_of(48, 128, 7)}) {
    ProfileFile::save(dir / "p", profile);
    EXPECT_EQ(ProfileFile::load(dir / "p", 48, 128, &warning), profile);
  }
  EXPECT_EQ(warning, "");
  EXPECT_EQ(::sluice::test::names_in(dir.path()), std::vector<std::string>{"p"});
}

TEST(ProfileFile, WhereThereIsNoFileNothingIsLoadedOrSaid) {
  const TempDir dir;
  EXPECT_EQ(warning_for(dir / "none"), "");
  EXPECT_EQ(warning_for(dir / "no/such/folder"), "");
  EXPECT_EQ(warning_for(""), "");
}

TEST(ProfileFile, SavingMakesFoldersThatNobodyElseMayEnter) {
  const TempDir dir;
  ProfileFile::save(dir / "a/b/p", profile_of(2, 3));
  for (const char* folder : {"a", "a/b"}) {
    struct stat status {};
    ASSERT_EQ(::stat((dir / folder).c_str(), &status), 0) << folder;
    EXPECT_EQ(status.st_mode & 0777u, 0700u) << folder;
  }
}

TEST(ProfileFile, EveryTruncationAndEveryChangedByteIsAWarning) {
  const TempDir dir;
  const std::string whole = text_of(profile_of(2, 3));
  for (size_t n = 0; n < whole.size(); ++n) {
    ::sluice::test::write_file(dir / "p", whole.substr(0, n));
    EXPECT_TRUE(warning_for(dir / "p").starts_with((dir / "p") + ": ")) << n << " bytes";
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 0x10);
    ::sluice::test::write_file(dir / "p", changed);
    EXPECT_TRUE(warning_for(dir / "p").ends_with("; starting without it")) << "byte " << n;
  }
  ::sluice::test::write_file(dir / "p", whole + "x");
  EXPECT_NE(warning_for(dir / "p"), "");
}

TEST(ProfileFile, TheWarningSaysWhatWasFound) {
  const TempDir dir;
  ProfileFile::save(dir / "p", profile_of(3, 2));
  EXPECT_EQ(warning_for(dir / "p"),
            (dir / "p") +
                ": is the routing profile of a model of 3 layers of 2 experts; expected 2 of 3; "
                "starting without it");
  // One dimension alone is wrong, to either side.
  for (const auto& [n_layers, n_experts] : {std::pair{1, 3}, {3, 3}, {2, 2}, {2, 4}}) {
    ProfileFile::save(dir / "p", profile_of(n_layers, n_experts));
    EXPECT_EQ(warning_for(dir / "p"),
              cat(dir / "p", ": is the routing profile of a model of ", n_layers, " layers of ",
                  n_experts, " experts; expected 2 of 3; starting without it"));
  }
  EXPECT_EQ(warning_for(dir.path()), dir.path() + ": is not a file; starting without it");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(warning_for(dir / "pipe"), (dir / "pipe") + ": is not a file; starting without it");

  // What nobody can open or read, not even root.
  std::filesystem::create_symlink("loop", dir / "loop");
  EXPECT_EQ(
      warning_for(dir / "loop"),
      (dir / "loop") + ": cannot be read (Too many levels of symbolic links); starting without it");
  std::filesystem::create_symlink("/proc/self/mem", dir / "mem");
  EXPECT_EQ(warning_for(dir / "mem"),
            (dir / "mem") + ": cannot be read (Input/output error); starting without it");

  ::sluice::test::write_file(dir / "large", "");
  std::filesystem::resize_file(dir / "large", uint64_t{1} << 40);
  EXPECT_EQ(warning_for(dir / "large"),
            (dir / "large") + ": is larger than 32.0 MiB; starting without it");
}

TEST(ProfileFile, OnAFullDiskTheOlderFileStaysWhole) {
  const TempDir dir;
  const RoutingProfile older = profile_of(2, 3);
  ProfileFile::save(dir / "p", older);
  std::filesystem::create_symlink("/dev/full", dir / "p.partial");
  const auto save = [&] { ProfileFile::save(dir / "p", profile_of(2, 3, 7)); };
  EXPECT_NE(test::error_of(Errc::bad_file, save).find("No space left"), std::string::npos);
  std::string warning;
  EXPECT_EQ(ProfileFile::load(dir / "p", 2, 3, &warning), older);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(::sluice::test::names_in(dir.path()), std::vector<std::string>{"p"});
}

TEST(ProfileFile, SavingWhereNothingCanBeMadeSaysSo) {
  const TempDir dir;
  ::sluice::test::write_file(dir / "file", "mine");
  for (const char* path : {"file/p", "file/folder/p"}) {
    const auto save = [&] { ProfileFile::save(dir / path, profile_of(2, 3)); };
    EXPECT_NE(test::error_of(Errc::bad_file, save).find("Not a directory"), std::string::npos);
  }
  EXPECT_EQ(::sluice::test::read_file(dir / "file"), "mine");
}

// Two runs of one model may well end together.
TEST(ProfileFile, ManyMaySaveAtTheSameTime) {
  const TempDir dir;
  std::vector<std::string> errors(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& error : errors) {
      threads.emplace_back([&] {
        try {
          for (int i = 0; i < 30; ++i) ProfileFile::save(dir / "folder/p", profile_of(2, 3));
        } catch (const Error& e) {
          error = e.what();
        }
      });
    }
  }
  EXPECT_EQ(errors, std::vector<std::string>(4));
  EXPECT_EQ(::sluice::test::read_file(dir / "folder/p"), text_of(profile_of(2, 3)));
}

}  // namespace
}  // namespace sluice::engine
