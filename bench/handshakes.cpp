// Handshakes between a device and the host: the device asks for one expert that it does not hold,
// waits, and adds the host's row. How long each of many takes, in a recording, as a table: seen
// from the host (launch, expert and all), the device's wait alone, and the host's computing. The
// same with the expert found on the device stands beside it. Every request is another expert's, so
// weights come from memory.
//
//   cmake --preset release -DSLUICE_BENCH=ON
//   cmake --build --preset release --target bench_handshakes
//   build/release/bench/bench_handshakes MODEL.gguf [sim|cuda] [how many] [threads]
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/ram_device_options.h"
#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "base/units.h"
#include "bench_main.h"
#include "engine/loaded_model.h"
#include "engine/machine/one_expert.h"

namespace sluice {
namespace {

constexpr int kTogether = 1000;  // while the worker is awake, as in a step
constexpr int kMillion = 1'000'000, kTrial = 20'000;

// Of one figure of all handshakes, in microseconds.
class Times {
 public:
  explicit Times(int n) { all_.reserve(static_cast<size_t>(n)); }
  void add(double us) { all_.push_back(static_cast<float>(us)); }

  void print(const char* what) {
    const auto longest = std::ranges::max_element(all_);
    const auto place = longest - all_.begin();
    const auto n_over = std::ranges::count_if(all_, [](float us) { return us > 1000.0f; });
    std::ranges::sort(all_);
    std::printf("| %s | %zu | %.1f | %.1f | %.1f | %.1f | %td | %td |\n", what, all_.size(),
                at(0.5), at(0.99), at(0.999), at(1.0), place, n_over);
  }

 private:
  double at(double share) const {
    const auto last = static_cast<double>(all_.size() - 1);
    return static_cast<double>(all_[static_cast<size_t>(share * last)]);
  }
  std::vector<float> all_;
};

std::unique_ptr<backend::Device> make_device(std::string_view name) {
  if (name == "cuda") return backend::make_cuda_device(0);
  if (name != "sim") throw Error(Errc::bad_request, cat("'", name, "'; expected sim or cuda"));
  return backend::make_ram_device({.n_bytes = 256 * kMiB, .before_copy = {}});
}

void measure(engine::OneExpert& expert, int n_handshakes) {
  const int n_found = std::max(n_handshakes / 10, 1);
  Times found(n_found), asked(n_handshakes), waited(n_handshakes), computed(n_handshakes);
  for (int i = 0; i < n_found; ++i) found.add(expert.on_device() * 1e6);
  for (int i = 0; i < n_handshakes;) {
    expert.begin_asking();
    for (const int end = std::min(i + kTogether, n_handshakes); i < end; ++i) {
      asked.add(expert.ask() * 1e6);
      waited.add(static_cast<double>(expert.log().wait_ns) * 1e-3);
      computed.add(static_cast<double>(expert.log().cpu_ns) * 1e-3);
    }
    expert.end_asking();
  }
  std::printf("| microseconds | how many | p50 | p99 | p99.9 | longest | which | over 1 ms |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  found.print("the device has the expert");
  asked.print("the host is asked for it");
  waited.print("of that, the device waits");
  computed.print("of that, the host computes");
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_handshakes MODEL.gguf [sim|cuda] [how many] [threads]\n");
    return 2;
  }
  const std::string_view name = argc > 2 ? argv[2] : "sim";
  const auto number = [&](int i, int usual) { return i < argc ? std::atoi(argv[i]) : usual; };
  const int n_handshakes = std::max(number(3, name == "cuda" ? kMillion : kTrial), 1);
  const engine::LoadedModel loaded(argv[1], {.n_threads = std::max(number(4, 0), 0)});
  const std::unique_ptr<backend::Device> device = make_device(name);
  engine::OneExpert expert(loaded.model, *device, *loaded.pool);
  std::printf("%s; %s, %d threads, an expert of %s\n\n", machine_fingerprint("").c_str(),
              device->name().c_str(), loaded.pool->n_threads(),
              format_bytes(expert.n_bytes()).c_str());
  measure(expert, n_handshakes);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] { return sluice::run(argc, argv); });
}
