// Mapping a file, and the texts for what cannot be mapped.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "unit/gguf/file_bytes.h"
#include "unit/gguf/temp_dir.h"

namespace sluice::gguf::test {
namespace {

TEST(MappedFile, HoldsTheBytesAndKeepsThemInPlaceWhenMoved) {
  const TempDir dir;
  write_file(dir / "f", "some bytes");
  MappedFile first = MappedFile::open(dir / "f");
  EXPECT_EQ(first.path(), dir / "f");
  const std::byte* address = first.bytes().data();
  MappedFile second = std::move(first);
  ASSERT_EQ(second.bytes().size(), 10u);
  EXPECT_EQ(second.bytes().data(), address);
  EXPECT_EQ(std::memcmp(address, "some bytes", 10), 0);

  write_file(dir / "g", "other");
  second = MappedFile::open(dir / "g");
  EXPECT_EQ(std::memcmp(second.bytes().data(), "other", 5), 0);
}

TEST(MappedFile, OfAHeaderReadsAsZerosBehindIt) {
  constexpr uint64_t kBytes = 40 * kGiB;  // more than there is memory: none of it is used
  const std::string header(10000, 'h');
  const MappedFile file = MappedFile::of_header("far.gguf", as_bytes(header), kBytes);
  ASSERT_EQ(file.bytes().size(), kBytes);
  EXPECT_EQ(std::memcmp(file.bytes().data(), header.data(), header.size()), 0);
  for (const uint64_t at : {uint64_t{10000}, uint64_t{12288}, kBytes - 1}) {
    EXPECT_EQ(file.bytes()[at], std::byte{0}) << at;
  }
  EXPECT_THROW(MappedFile::of_header("far.gguf", {}, kBytes), Error);
  EXPECT_THROW(MappedFile::of_header("far.gguf", as_bytes(header), 9999), Error);
}

TEST(MappedFile, SaysWhatIsWrongWithAPath) {
  const TempDir dir;
  write_file(dir / "empty", "");
  const auto text = [&](const std::string& path) {
    return error_of([&] { MappedFile::open(path); });
  };
  EXPECT_EQ(text(dir / "none"), (dir / "none") + ": there is no such file; expected a GGUF file");
  EXPECT_EQ(text(dir.path()), dir.path() + ": is a directory; expected a GGUF file");
  EXPECT_EQ(text("/dev/null"), "/dev/null: is not a regular file; expected a GGUF file");
  EXPECT_PRED2(contains, text(dir / "empty"), "empty: is empty; expected a GGUF file");
  EXPECT_PRED2(contains, text(dir / "empty/below"), "cannot be opened (Not a directory)");
}

TEST(MappedFile, SaysThatAFileMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TempDir dir;
  write_file(dir / "secret", "bytes");
  std::filesystem::permissions(dir / "secret", std::filesystem::perms::none);
  EXPECT_PRED2(contains, error_of([&] { MappedFile::open(dir / "secret"); }), "Permission denied");
}

TEST(MappedFile, PopulatesPieceByPieceAndReportsEach) {
  const TempDir dir;
  write_file(dir / "f", "");
  constexpr uint64_t kSize = 70 * kMiB + 5;
  std::filesystem::resize_file(dir / "f", kSize);  // sparse: costs no disk
  const MappedFile file = MappedFile::open(dir / "f");
  std::vector<uint64_t> reports;
  file.populate([&](uint64_t done) { reports.push_back(done); });
  EXPECT_EQ(reports, (std::vector<uint64_t>{32 * kMiB, 64 * kMiB, kSize}));
  file.populate({});
}

}  // namespace
}  // namespace sluice::gguf::test
