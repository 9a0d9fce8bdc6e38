// A long run on the RAM device: requests of mixed length, one after another, some in a session of
// their own. Ends with 1 where memory grows or an answer changes. `make soak` runs it for half an
// hour, the tests for some seconds.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/random.h"
#include "sluice/sluice.h"

namespace {

using sluice::Session;
using sluice::TokenId;

constexpr uint64_t kMostGrowth = 8
                                 << 20;  // bytes; the allocator keeps a few megabytes, more or less

uint64_t resident_bytes() {
  uint64_t n_total = 0, n_resident = 0;
  std::ifstream("/proc/self/statm") >> n_total >> n_resident;
  return n_resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

sluice::SessionOptions device_options(int n_slots) {
  sluice::SessionOptions options{.n_ctx = 512, .prefill_chunk = 64};
  options.device.kind = sluice::DeviceKind::sim;
  options.device.sim.machine.link_gbps = 5.0;
  options.device.moe = sluice::ExpertPlace::cache;
  options.device.n_slots = n_slots;
  options.device.prefetch = sluice::Choice::on;
  return options;
}

// What request i asks: the same for the same number.
std::vector<TokenId> prompt_of(int i, int n_vocab) {
  const auto n = static_cast<size_t>(1 + sluice::random_bits(1, static_cast<uint64_t>(i)) % 200);
  std::vector<TokenId> tokens(n);
  for (size_t t = 0; t < n; ++t) {
    tokens[t] = static_cast<TokenId>(sluice::random_bits(2, static_cast<uint64_t>(i) * 1000 + t) %
                                     static_cast<uint64_t>(n_vocab));
  }
  return tokens;
}

std::vector<TokenId> answer(Session& session, int i, int n_vocab) {
  session.truncate(0);
  const auto n = static_cast<int>(1 + sluice::random_bits(3, static_cast<uint64_t>(i)) % 64);
  return session.generate(prompt_of(i, n_vocab), {.n_tokens = n}).tokens;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: soak MODEL SECONDS REQUESTS\n");
    return 2;
  }
  // One heap for all threads, and large blocks outside of it as at the start: how many heaps the
  // library opens, and what it chooses to keep of them, would hide a leak.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  const double n_seconds = std::atof(argv[2]);
  const int n_requests = std::atoi(argv[3]);
  const auto start = std::chrono::steady_clock::now();
  const sluice::Model model = sluice::Model::load(argv[1], {.n_threads = 2});
  const int n_vocab = model.info().n_vocab;
  Session lasting(model, device_options(100));
  const std::vector<TokenId> first = answer(lasting, 0, n_vocab);
  uint64_t settled = 0, most = 0;
  for (int i = 1; i < n_requests; ++i) {
    if (i % 10 == 0) {  // one that comes and goes
      Session passing(model, device_options(40 + i % 7));
      answer(passing, i, n_vocab);
    } else {
      answer(lasting, i, n_vocab);
    }
    if (i == n_requests / 4) settled = resident_bytes();
    if (i > n_requests / 4) most = std::max(most, resident_bytes());
    const double due = n_seconds * i / n_requests;  // spread over the time that there is
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::max(0.0, due - seconds_since(start))));
    if (i % 20 == 0) {
      std::printf("%4d requests, %5.0f s, %.1f MiB\n", i, seconds_since(start),
                  static_cast<double>(resident_bytes()) / (1 << 20));
      std::fflush(stdout);
    }
  }
  const bool is_same = answer(lasting, 0, n_vocab) == first;
  const bool is_flat = most <= settled + kMostGrowth;
  std::printf("memory: %.1f MiB after a quarter, at most %.1f later; the first answer %s\n",
              static_cast<double>(settled) / (1 << 20), static_cast<double>(most) / (1 << 20),
              is_same ? "is the same at the end" : "HAS CHANGED");
  if (!is_flat) std::printf("memory GREW\n");
  return is_same && is_flat ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "soak: %s\n", e.what());
  return 1;
}
