// What every device promises, by the device made of RAM.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_device.h"
#include "support/device_promises.h"

namespace sluice::backend::test {
namespace {

struct MakeRamDevice {
  static std::unique_ptr<Device> make() {
    return std::make_unique<RamDevice>(
        RamDeviceOptions{.n_bytes = 64 * kMiB, .link_gbps = 1000.0, .delay_us = 0.0});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Ram, DevicePromises, MakeRamDevice);

}  // namespace
}  // namespace sluice::backend::test
