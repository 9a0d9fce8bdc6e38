// Where the output cannot go: files appear whole or not at all, an older file stays as it was, and
// a reader who leaves does not make the program hang.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/units.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

class Output : public testing::Test {
 protected:
  // The two commands that write a file.
  std::vector<Args> writers(const std::string& out) const {
    return {{"synth", out, "--layers", "1"}, {"quantize", source, out, "F16"}};
  }
  void expect_nothing_written(std::vector<std::string> others = {}) {
    others.push_back("source.gguf");
    std::ranges::sort(others);
    EXPECT_EQ(names_in(dir.path()), others);
  }

  TempDir dir;
  const std::string source = make_model(dir / "source.gguf");
};

TEST_F(Output, IntoAMissingFolderIsRefused) {
  const std::string out = dir / "missing/out.gguf";
  for (const Args& args : writers(out)) {
    EXPECT_TRUE(refused(run_sluice(args), {out, "No such file or directory", "expected"}));
  }
  expect_nothing_written();
}

TEST_F(Output, UnderAFileIsRefused) {
  const std::string out = source + "/out.gguf";
  for (const Args& args : writers(out)) {
    EXPECT_TRUE(refused(run_sluice(args), {out, "Not a directory", "expected"}));
  }
  expect_nothing_written();
}

TEST_F(Output, InThePlaceOfAFolderIsRefused) {
  std::filesystem::create_directory(dir / "folder");
  for (const Args& args : writers(dir / "folder")) {
    EXPECT_TRUE(refused(run_sluice(args), {dir / "folder", "irectory", "expected"}));
  }
  expect_nothing_written({"folder"});
}

TEST_F(Output, IntoAFolderThatMayNotBeWrittenIsRefused) {
  namespace fs = std::filesystem;
  const std::string folder = dir / "locked";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  // Root may write everywhere, unless it gives up that right.
  const ProcessOptions obedient{.in_child = [] {
    if (::geteuid() == 0 && ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0) ::_exit(99);
  }};
  for (const Args& args : writers(folder + "/out.gguf")) {
    const Outcome outcome = run_sluice(args, obedient);
    if (outcome.exit_code == 99) GTEST_SKIP() << "root cannot give up its rights here";
    EXPECT_TRUE(refused(outcome, {folder + "/out.gguf", "Permission denied", "expected"}));
  }
  EXPECT_EQ(names_in(folder), std::vector<std::string>());
}

TEST_F(Output, OntoAFullDiskIsRefusedAndLeavesTheOldFile) {
  const ProcessOptions short_files{.in_child = [] {
    ::signal(SIGXFSZ, SIG_IGN);  // then write() fails, as it does on a full disk
    const rlimit limit{kMiB + 12345, kMiB + 12345};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(99);
  }};
  const std::string out = dir / "out.gguf";
  for (const Args& args : writers(out)) {
    EXPECT_TRUE(refused(run_sluice(args, short_files), {out, "File too large", "enough room"}));
    expect_nothing_written();
  }
  write_file(out, "precious");
  for (const Args& args : writers(out)) {
    EXPECT_TRUE(refused(run_sluice(args, short_files), {out, "File too large", "enough room"}));
    expect_nothing_written({"out.gguf"});
    EXPECT_EQ(read_file(out), "precious");
  }
}

TEST_F(Output, ReplacesAnOldFileOnlyWhenItIsWhole) {
  const std::string out = dir / "out.gguf";
  for (const Args& args : writers(out)) {
    write_file(out, "old");
    EXPECT_TRUE(succeeded(run_sluice(args)));
    EXPECT_EQ(read_file(out).substr(0, 4), "GGUF");
    expect_nothing_written({"out.gguf"});
  }
}

Outcome in_shell(const std::string& line) {
  return run_process({"/bin/sh", "-c", line}, {.timeout = std::chrono::seconds(60)});
}

std::string many_logits(const std::string& model) {
  return std::string(SLUICE_BINARY) + " logits -m " + model + " --tokens " + prompt_of(64) +
         " --all";
}

// Far more than a pipe holds.
TEST_F(Output, IntoAPipeThatIsClosedEarlyDoesNotHang) {
  ASSERT_GT(output_of({"logits", "-m", source, "--tokens", prompt_of(64), "--all"}).size(),
            200000u);
  const Outcome outcome = in_shell(many_logits(source) + " | head -n 1");
  EXPECT_FALSE(outcome.timed_out) << outcome;
  EXPECT_EQ(outcome.out, "  pos    token   next:logprob, best first\n");
}

// As for a program started by one that ignores SIGPIPE: the write fails instead.
TEST_F(Output, IntoAClosedPipeWithoutTheSignalIsAnError) {
  const Outcome outcome =
      in_shell("trap '' PIPE; (" + many_logits(source) + "; echo code $? >&2) | head -n 1");
  EXPECT_FALSE(outcome.timed_out) << outcome;
  EXPECT_EQ(outcome.err.substr(outcome.err.find("code")), "code 1\n") << outcome;
  EXPECT_NE(outcome.err.find("standard output cannot be written"), std::string::npos) << outcome;
}

// Every command that prints, each in all its ways: what was lost is an error that says why.
TEST_F(Output, ThatNobodyCouldReadIsNoSuccess) {
  const std::string model = " -m " + source;
  const std::string tokens = model + " --tokens 1,2";
  const std::string answer = " run --raw -n 20" + model;
  write_file(dir / "text", std::string(64, 'a'));
  const std::string text = model + " -c 32 -f " + (dir / "text");
  for (const std::string& command : {" logits" + tokens,
                                     " logits --json" + tokens,
                                     " run -n 3" + tokens,
                                     " run --json -n 3" + tokens,
                                     answer + " -p a",
                                     answer + " --json -p a",
                                     answer + " --expert-stats-json - -p a",
                                     " inspect " + source,
                                     " inspect --json " + source,
                                     " tokenize -p a" + model,
                                     " tokenize --json -p a" + model,
                                     " perplexity" + text,
                                     " perplexity --json" + text,
                                     " plan" + model,
                                     " plan --json" + model,
                                     std::string(" simulate --generate 10"),
                                     std::string(" simulate --json --generate 10"),
                                     " synth --layers 1 " + (dir / "s"),
                                     " synth --json --layers 1 " + (dir / "s"),
                                     " quantize " + source + " " + (dir / "q") + " F16",
                                     " quantize --json " + source + " " + (dir / "q") + " F16",
                                     " bench --device sim --json -p 4 -n 2 -r 1 -d 0" + model,
                                     std::string(" --help"),
                                     std::string(" run --help"),
                                     std::string(" --version")}) {
    const Outcome outcome =
        in_shell("exec " + std::string(SLUICE_BINARY) + command + " >/dev/full");
    EXPECT_TRUE(refused(outcome, {"standard output cannot be written", "No space left"}))
        << command;
  }
}

}  // namespace
}  // namespace sluice::test
