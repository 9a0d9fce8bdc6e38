// Output files: whole or not at all, links kept, devices and pipes written to and never replaced.
// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace sluice {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;
using test::write_file;

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

TEST(OutputFile, ReplacesAnOlderFileOnlyWhenItIsCommitted) {
  const TempDir dir;
  write_file(dir / "f", "older");
  {
    OutputFile file(dir / "f");
    file.append_zeros(3'000'000);
    EXPECT_EQ(file.bytes_written(), 3'000'000u);
    EXPECT_EQ(read_file(dir / "f"), "older");
  }
  EXPECT_EQ(read_file(dir / "f"), "older");
  EXPECT_EQ(test::names_in(dir.path()), std::vector<std::string>{"f"}) << "nothing is left of it";
  write_text(dir / "f", "newer");
  EXPECT_EQ(read_file(dir / "f"), "newer");
  EXPECT_EQ(test::names_in(dir.path()), std::vector<std::string>{"f"});
}

TEST(OutputFile, KeepsALinkAndReplacesWhatItPointsTo) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "elsewhere");
  write_file(dir / "elsewhere/f", "older");
  std::filesystem::create_symlink("elsewhere/f", dir / "link");
  write_text(dir / "link", "newer");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(read_file(dir / "elsewhere/f"), "newer");
}

// Through a link, as /dev/stdout is one; a rename would put a file in the place of either.
TEST(OutputFile, WritesToADeviceAndLeavesItInItsPlace) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/null", dir / "null");
  write_text(dir / "null", "gone");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "null"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  std::filesystem::create_symlink("/dev/full", dir / "full");
  EXPECT_EQ(error_of(Errc::bad_file, [&] { write_text(dir / "full", "too much"); }),
            (dir / "full") +
                ": cannot be written after 8 B (No space left on device); expected a "
                "writable place with enough room");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "full"));
  EXPECT_EQ(test::names_in(dir.path()), (std::vector<std::string>{"full", "null"}));
}

TEST(OutputFile, WritesIntoAPipeWithAName) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const int reader = ::open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_text(dir / "pipe", "through");
  std::string got(20, '\0');
  got.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, got.data(), got.size()))));
  ::close(reader);
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(dir / "pipe"));
}

TEST(OutputFile, RefusesAFolder) {
  const TempDir dir;
  EXPECT_EQ(error_of(Errc::bad_file, [&] { OutputFile{dir.path()}; }),
            dir.path() +
                ": cannot be opened after 0 B (Is a directory); expected a writable place "
                "with enough room");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace sluice
