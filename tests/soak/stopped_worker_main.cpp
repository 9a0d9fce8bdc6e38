// The thread that computes for the host what a device lacks is stopped for a while, in a session as
// users have it: by a signal, whose handler stands still in that thread. The next request must fail
// with an error that names the layer, when the deadline (10 s) is over and not only when the thread
// goes on, and the first request after the stop must have the bits of one before. Ends with 1 where
// that is not so.
//
//   stopped_worker MODEL SECONDS [sim|cuda]
// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/random.h"
#include "sluice/error.h"
#include "sluice/sluice.h"

namespace {

using sluice::Error;
using sluice::Session;
using Logits = std::vector<float>;

std::atomic<bool> stopped = false;

// All of it may be called by a handler.
void stand_still(int) {
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  while (stopped) nanosleep(&pause, nullptr);
}

// Of the thread with that name; 0 where there is none.
pid_t thread_named(const std::string& wanted) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name == wanted) return std::atoi(entry.path().filename().c_str());
  }
  return 0;
}

sluice::SessionOptions options_for(bool on_gpu) {
  sluice::SessionOptions options{.n_ctx = 512, .prefill_chunk = 16};
  options.device.kind = on_gpu ? sluice::DeviceKind::cuda : sluice::DeviceKind::sim;
  options.device.moe = sluice::ExpertPlace::cache;
  options.device.n_slots = 40;
  options.device.link_share = 0.0;  // the CPU computes what is missing
  return options;
}

// A prompt, then tokens one by one, whatever the model thinks of them.
Logits request(Session& session, int n_vocab) {
  const auto token = [n_vocab](size_t i) {
    return static_cast<sluice::TokenId>(sluice::random_bits(9, i) % static_cast<uint64_t>(n_vocab));
  };
  std::vector<sluice::TokenId> prompt;
  while (prompt.size() < 12) prompt.push_back(token(prompt.size()));
  Logits all;
  size_t next = prompt.size();
  session.truncate(0);
  session.generate(prompt, {.n_tokens = 28, .choose = [&](std::span<const float> logits) {
                              all.insert(all.end(), logits.begin(), logits.end());
                              return token(next++);
                            }});
  return all;
}

double now() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

bool names_layer(const std::string& error) {
  return error.starts_with("layer ") && error.size() > 6 && error[6] >= '0' && error[6] <= '9';
}

int fail(const char* what) {
  std::printf("FAILED: %s\n", what);
  return 1;
}

int run(const std::string& path, double n_seconds, bool on_gpu) {
  const sluice::Model model = sluice::Model::load(path);
  const int n_vocab = model.info().n_vocab;
  Session session(model, options_for(on_gpu));
  const Logits before = request(session, n_vocab);
  if (session.expert_stats().total().n_cpu == 0) return fail("the CPU had nothing to compute");
  const pid_t worker = thread_named("expert misses");
  if (worker == 0) return fail("there is no such thread");
  struct sigaction action = {};
  action.sa_handler = stand_still;
  sigaction(SIGUSR1, &action, nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // between steps it sleeps
  stopped = true;
  syscall(SYS_tgkill, getpid(), worker, SIGUSR1);
  const double start = now();
  std::thread releaser([n_seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(n_seconds));
    stopped = false;
  });
  std::string first_error;
  Logits after;
  int n_failed = 0;
  bool came_late = false;
  for (; after.empty() && now() - start < n_seconds + 60.0;) {
    try {
      after = request(session, n_vocab);
    } catch (const Error& e) {
      if (n_failed++ == 0) {
        first_error = e.what();
        came_late = !stopped;
        std::printf("after %.1f s: %s\n", now() - start, e.what());
      }
      if (e.code() != sluice::Errc::device || !names_layer(e.what())) first_error = "";
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  releaser.join();
  if (first_error.empty()) return fail("no step failed, or an error does not name its layer");
  if (came_late) return fail("the error came only when the thread went on");
  if (after.size() != before.size()) return fail("no request succeeded afterwards");
  std::printf("stopped for %.0f s: %d requests failed, the next one came after %.1f s\n", n_seconds,
              n_failed, now() - start);
  if (std::memcmp(after.data(), before.data(), before.size() * sizeof(float)) != 0) {
    return fail("its logits are others than before");
  }
  std::printf("its %zu logits are those of before, to the bit\n", after.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: stopped_worker MODEL SECONDS [sim|cuda]\n");
    return 2;
  }
  return run(argv[1], std::atof(argv[2]), argc > 3 && std::string(argv[3]) == "cuda");
} catch (const std::exception& e) {
  std::fprintf(stderr, "stopped_worker: %s\n", e.what());
  return 1;
}
