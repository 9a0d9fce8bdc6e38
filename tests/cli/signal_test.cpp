// Signals that end the program in the midst of its work: no half-written file stays behind.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>

#include <filesystem>
#include <fstream>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

// A terminal that takes no output: a program that writes to it waits until it is ended. So a signal
// finds it at work however slow the machine is.
class StoppedTerminal {
 public:
  StoppedTerminal() {
    if (::openpty(&master_, &slave_, nullptr, nullptr, nullptr) != 0) std::abort();
    for (const int fd : {master_, slave_}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (::tcflow(slave_, TCOOFF) != 0) std::abort();
  }
  ~StoppedTerminal() {
    ::close(slave_);
    ::close(master_);
  }
  StoppedTerminal(const StoppedTerminal&) = delete;
  StoppedTerminal& operator=(const StoppedTerminal&) = delete;

  void go_on() const { ::tcflow(slave_, TCOON); }
  void become_output() const {
    if (::dup2(slave_, 1) < 0 || ::dup2(slave_, 2) < 0) ::_exit(126);
  }

 private:
  int master_ = -1;
  int slave_ = -1;
};

bool has_ended(pid_t child) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

template <typename Condition>
bool wait_until(const Condition& condition) {
  for (int i = 0; i < 100000 && !condition(); ++i) ::usleep(1000);
  return condition();
}

// Whether a signal is still on its way to any thread of the process.
bool is_pending(pid_t child, int signal) {
  std::ifstream in("/proc/" + std::to_string(child) + "/status");
  for (std::string key, value; in >> key;) {
    if (key != "ShdPnd:") continue;
    in >> value;
    return (std::stoull(value, nullptr, 16) >> (signal - 1)) & 1;
  }
  return false;
}

class Signals : public testing::Test {
 protected:
  // Runs the program, waits for its partial file, and sends the signals one after the other.
  Outcome run_until(const Args& args, const std::vector<int>& signals) {
    const StoppedTerminal terminal;
    ProcessOptions options;
    options.in_child = [&] { terminal.become_output(); };
    options.meanwhile = [&](pid_t child) {
      EXPECT_TRUE(wait_until(
          [&] { return std::filesystem::exists(out + ".partial") || has_ended(child); }));
      for (const int signal : signals) {
        ::kill(child, signal);
        wait_until([&] { return !is_pending(child, signal) || has_ended(child); });
      }
    };
    return run_sluice(args, options);
  }

  void expect_no_trace_of(const Args& args, const std::vector<int>& signals) {
    const Outcome outcome = run_until(args, signals);
    EXPECT_EQ(outcome.signal, signals.back()) << outcome;
    EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"source.gguf"}) << outcome;
  }

  TempDir dir;
  const std::string source = make_model(dir / "source.gguf");
  const std::string out = dir / "out";
  const Args run = {"run", "-m", source, "--raw", "-n", "50"};
};

TEST_F(Signals, LeaveNoPartialFileOfAModel) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    expect_no_trace_of({"synth", out, "--layers", "1"}, {signal});
    expect_no_trace_of({"quantize", source, out, "F16"}, {signal});
  }
}

TEST_F(Signals, LeaveNoPartialTrace) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    expect_no_trace_of({"run", "-m", source, "--tokens", "1,2", "--trace-out", out}, {signal});
  }
}

// Its first Ctrl-C asks the answer to stop, which cannot be heard while nobody takes its output.
TEST_F(Signals, LeaveNoPartialTraceOfAnAnswer) {
  expect_no_trace_of(run + Args{"-p", "a", "--trace-out", out}, {SIGTERM});
  expect_no_trace_of(run + Args{"-p", "a", "--trace-out", out}, {SIGINT, SIGINT});
}

TEST_F(Signals, KeepAnOlderFileAsItWas) {
  write_file(out, "older");
  run_until({"synth", out, "--layers", "1"}, {SIGTERM});
  EXPECT_EQ(read_file(out), "older");
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"out", "source.gguf"}));
}

// As under nohup: what is ignored when the program starts stays ignored.
TEST_F(Signals, ThatAreIgnoredFromTheStartEndNothing) {
  const StoppedTerminal terminal;
  ProcessOptions options;
  options.in_child = [&] {
    terminal.become_output();
    ::signal(SIGHUP, SIG_IGN);
  };
  options.meanwhile = [&](pid_t child) {
    EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(out + ".partial"); }));
    ::kill(child, SIGHUP);
    terminal.go_on();
  };
  EXPECT_TRUE(succeeded(run_sluice({"synth", out, "--layers", "1"}, options)));
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"out", "source.gguf"}));
}

// The reader of a pipe leaves: SIGPIPE ends the program, and takes the trace with it.
TEST_F(Signals, OfAPipeWithoutAReaderLeaveNoPartialTrace) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ProcessOptions options;
  options.in_child = [&] { ::dup2(ends[1], 1); };
  ::close(ends[0]);
  const Outcome outcome =
      run_sluice({"run", "-m", source, "--tokens", "1,2", "--trace-out", out}, options);
  ::close(ends[1]);
  EXPECT_EQ(outcome.signal, SIGPIPE) << outcome;
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"source.gguf"}) << outcome;
}

}  // namespace
}  // namespace sluice::test
