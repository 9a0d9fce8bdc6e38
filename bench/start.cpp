// How soon a session is as fast as it gets: tokens per second of decode in windows from the first
// token on, after a cold start (nobody knows which experts are used) and after a warm one (with the
// routing profile that the cold run has kept). The routing is a trace's; the warm run goes through
// another part of it than the cold one learned from. Each start is repeated, and of every token the
// median counts.
//
//   cmake --preset release -DSLUICE_BENCH=ON && cmake --build --preset release --target bench_start
//   build/release/bench/bench_start MODEL.gguf TRACE.slrt [DEVICE] [VRAM] [tokens] [repeats]
//
// DEVICE: sim, cuda, or a described machine in its own time (rtx4070ti-12g+64g-ddr5).
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "base/random.h"
#include "bench_main.h"
#include "cli/bench/route_trace.h"
#include "cli/simulate/routing_shape.h"
#include "engine/machine/session_plan.h"
#include "policy/plan/hardware.h"
#include "sluice/sluice.h"

namespace sluice {
namespace {

constexpr int kPrompt = 64;
constexpr size_t kWindow = 16;  // tokens that say how fast a session is
constexpr double kNear = 0.9;   // of the steady speed

using Seconds = std::vector<double>;  // of each decoded token

struct Start {
  const Model& model;
  const cli::RouteTrace& trace;
  SessionOptions options;
  int n_tokens;
};

TokenId token_at(const Model& model, int i) {
  const auto n_vocab = static_cast<uint64_t>(model.info().n_vocab);
  return static_cast<TokenId>(random_bits(1, static_cast<uint64_t>(i)) % n_vocab);
}

// Of a session of its own, whose text uses what the trace has from step `first` on.
Seconds run_session(Start start, int first, const std::string& profile) {
  start.options.device.profile_path = profile;
  start.options.reroute = [&start, first](int pos, int layer, std::span<int32_t> experts) {
    start.trace.apply(first + pos, layer, experts);
  };
  Session session(start.model, start.options);
  std::vector<TokenId> prompt;
  for (int i = 0; i < kPrompt; ++i) prompt.push_back(token_at(start.model, i));
  session.append(prompt);
  Seconds seconds;
  for (int i = 0; i < start.n_tokens; ++i) {
    const TokenId token = token_at(start.model, kPrompt + i);
    const double before = session.stats().decode_seconds;
    session.generate({}, {.n_tokens = 1, .given = {&token, 1}});
    seconds.push_back(session.stats().decode_seconds - before);
  }
  return seconds;
}

double median(Seconds values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Token by token.
Seconds medians(const std::vector<Seconds>& runs) {
  Seconds all;
  for (size_t i = 0; i < runs.front().size(); ++i) {
    Seconds of_token;
    for (const Seconds& run : runs) of_token.push_back(run[i]);
    all.push_back(median(std::move(of_token)));
  }
  return all;
}

// Tokens per second of those from first to last.
double speed(const Seconds& seconds, size_t first, size_t last) {
  last = std::min(last, seconds.size());
  if (first >= last) return 0.0;
  const auto begin = seconds.begin();
  return static_cast<double>(last - first) /
         std::accumulate(begin + static_cast<std::ptrdiff_t>(first),
                         begin + static_cast<std::ptrdiff_t>(last), 0.0);
}

void print(const char* name, const Seconds& seconds) {
  const size_t n = seconds.size();
  const double steady = speed(seconds, n - n / 3, n);
  size_t reached = 0;
  while (reached + kWindow < n && speed(seconds, reached, reached + kWindow) < kNear * steady) {
    ++reached;
  }
  std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f | %zu |\n", name,
              speed(seconds, 0, 1), speed(seconds, 1, 16), speed(seconds, 16, 64),
              speed(seconds, 64, 200), speed(seconds, 200, n), steady,
              speed(seconds, 0, 1) / steady, reached);
}

SessionOptions options_for(const std::string& device, const char* vram, int n_ctx) {
  SessionOptions options{.n_ctx = n_ctx};
  DeviceOptions& d = options.device;
  d.kind = device == "cuda" ? DeviceKind::cuda : DeviceKind::sim;
  d.moe = ExpertPlace::cache;
  if (vram) d.vram_bytes = policy::parse_bytes(vram, "VRAM");
  if (device == "sim" && vram) d.sim.machine.vram_free = *d.vram_bytes;
  if (device != "sim" && device != "cuda") {
    d.sim.machine = policy::parse_hardware(device, engine::this_machine());
    d.sim.is_virtual = true;
  }
  return options;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "bench_start MODEL TRACE [sim|cuda|machine] [VRAM] [tokens] [repeats]\n");
    return 2;
  }
  const auto number = [&](int i, int usual) { return i < argc ? std::atoi(argv[i]) : usual; };
  const int n_tokens = std::max(number(5, 600), 3), n_repeats = std::max(number(6, 3), 1);
  const int n_steps = kPrompt + n_tokens;
  const Model model = Model::load(argv[1]);
  const cli::RouteTrace trace(argv[2], cli::read_routing_shape(argv[1]), 2 * n_steps);
  Start start{model, trace,
              options_for(argc > 3 ? argv[3] : "sim", argc > 4 ? argv[4] : nullptr, n_steps),
              n_tokens};
  const std::string cold_profile =
      (std::filesystem::temp_directory_path() / cat("bench_start.", getpid(), ".slrp")).string();
  const std::string warm_profile = cold_profile + ".warm", measured = cold_profile + ".machine";
  start.options.device.machine_path = measured;  // this machine's rates, measured once
  std::vector<Seconds> cold, warm;
  for (int i = 0; i < n_repeats; ++i) {
    std::filesystem::remove(cold_profile);
    cold.push_back(run_session(start, 0, cold_profile));
  }
  for (int i = 0; i < n_repeats; ++i) {  // a session adds to what it was given
    std::filesystem::copy_file(cold_profile, warm_profile,
                               std::filesystem::copy_options::overwrite_existing);
    warm.push_back(run_session(start, n_steps, warm_profile));
  }
  std::filesystem::remove(cold_profile);
  std::filesystem::remove(warm_profile);
  std::filesystem::remove(measured);
  std::printf("%s; %d repeats of %d tokens behind a prompt of %d; tokens/s\n\n",
              machine_fingerprint("").c_str(), n_repeats, n_tokens, kPrompt);
  std::printf(
      "| start | first token | 2 to 16 | to 64 | to 200 | rest | steady (last third) | "
      "first of steady | tokens to 90 %% of steady |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  print("cold", medians(cold));
  print("warm", medians(warm));
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] { return sluice::run(argc, argv); });
}
