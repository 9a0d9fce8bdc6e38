// How near calibration comes to a link whose speed is known, and how long it takes: the RAM device
// is told a speed, and measured. On a busy machine the figures are lower, and that is not a fault.
//
//   cmake --preset release -DSLUICE_BENCH=ON && cmake --build --preset release --target
//   bench_calibration && build/release/bench/bench_calibration MODEL.gguf
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/calibration.h"

#include <cstdio>

#include "backend/ram/ram_device.h"
#include "base/machine_fingerprint.h"
#include "base/units.h"
#include "base/wall_clock.h"
#include "gguf/model_file.h"

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_calibration MODEL.gguf\n");
    return 2;
  }
  const gguf::ModelFile file = gguf::ModelFile::open(argv[1]);
  const model::Model model(file);
  ThreadPool threads(0);
  std::printf("%s\n\n%10s %10s %8s %10s %8s %8s\n", machine_fingerprint("").c_str(), "told GB/s",
              "measured", "share", "CPU GB/s", "us", "seconds");
  for (const double told : {0.25, 1.0, 2.0, 4.0}) {
    backend::RamDevice device({.n_bytes = 256 * kMiB, .link_gbps = told, .before_copy = {}});
    const double start = wall_seconds();
    const MachineRates rates = engine::calibrate(model, device, threads);
    std::printf("%10.2f %10.3f %7.0f%% %10.2f %8.1f %8.2f\n", told, rates.link_gbps,
                100.0 * rates.link_gbps / told, rates.cpu_gbps, rates.handshake_us,
                wall_seconds() - start);
  }
}
