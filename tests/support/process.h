// Runs a program and brings back all there is to know about how it went: both outputs, the exit
// code or the signal, the peak of its memory. Never waits longer than it was told to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

struct Outcome {
  std::string command;  // for the texts of failures
  int exit_code = -1;   // -1 where a signal ended it
  int signal = 0;
  bool timed_out = false;  // and was killed for it
  std::string out;
  std::string err;
  // Includes what the test itself held when it forked: the kernel counts from there.
  uint64_t peak_rss_bytes = 0;
};

inline std::ostream& operator<<(std::ostream& to, const Outcome& outcome) {
  to << outcome.command << "\n  ended with exit code " << outcome.exit_code;
  if (outcome.signal != 0) to << ", signal " << outcome.signal;
  if (outcome.timed_out) to << " (killed: out of time)";
  return to << ", " << outcome.out.size() << " bytes on stdout, which begin\n"
            << outcome.out.substr(0, 300) << "\n  and on stderr\n"
            << outcome.err.substr(0, 3000);
}

struct ProcessOptions {
  std::chrono::seconds timeout{100};
  std::vector<std::pair<std::string, std::string>> environment;  // added to the test's own
  std::function<void()> in_child;        // between fork and exec: limits and the like
  std::function<void(pid_t)> meanwhile;  // in the test, before the child's outputs are read
};

namespace process_detail {

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(size_t i) {
    if (ends[i] >= 0) ::close(std::exchange(ends[i], -1));
  }
  std::array<int, 2> ends;
};

[[noreturn]] inline void become(const std::vector<std::string>& argv, const ProcessOptions& options,
                                int out, int err) {
  ::setpgid(0, 0);  // so that what it starts can be ended with it
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(126);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (options.in_child) options.in_child();
  std::vector<char*> pointers;
  for (const std::string& arg : argv) pointers.push_back(const_cast<char*>(arg.c_str()));
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  std::perror(pointers[0]);
  ::_exit(127);
}

// Reads both until they end. False when the time is over.
inline bool read_both(Pipe& out, Pipe& err, Outcome& outcome,
                      std::chrono::steady_clock::time_point deadline) {
  const std::array<std::pair<Pipe*, std::string*>, 2> streams = {
      {{&out, &outcome.out}, {&err, &outcome.err}}};
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> fds = {{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), static_cast<int>(left.count()) + 1) < 0) continue;
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t n = ::read(fds[i].fd, buffer.data(), buffer.size());
      if (n > 0) streams[i].second->append(buffer.data(), static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) streams[i].first->close_end(0);
    }
  }
  return true;
}

}  // namespace process_detail

inline Outcome run_process(const std::vector<std::string>& argv,
                           const ProcessOptions& options = {}) {
  Outcome outcome;
  for (const std::string& arg : argv) outcome.command += (outcome.command.empty() ? "" : " ") + arg;
  process_detail::Pipe out;
  process_detail::Pipe err;
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) process_detail::become(argv, options, out.ends[1], err.ends[1]);
  out.close_end(1);
  err.close_end(1);
  if (options.meanwhile) options.meanwhile(child);

  bool in_time = process_detail::read_both(out, err, outcome, deadline);
  int status = 0;
  rusage usage{};
  while (in_time && ::wait4(child, &status, WNOHANG, &usage) == 0) {
    ::usleep(200);
    in_time = std::chrono::steady_clock::now() < deadline;
  }
  if (!in_time) {
    outcome.timed_out = true;
    ::kill(-child, SIGKILL);
    ::wait4(child, &status, 0, &usage);
  }
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return outcome;
}

}  // namespace sluice::test
