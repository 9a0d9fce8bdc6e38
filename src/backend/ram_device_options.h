// A device made of RAM, so that whatever runs on one can be tested without one, as it is described:
// its memory, its link, and the machine whose time it tells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "backend/device.h"

namespace sluice::backend {

enum class Clock { wall, virtual_time };

// What crosses the link: when it was asked for, and from when to when the link is taken by it.
struct LinkUse {
  const std::byte* to = nullptr;  // null: a read by the device's work
  uint64_t n_bytes = 0;
  double asked_at = 0.0, begins_at = 0.0, ends_at = 0.0;
};

struct RamDeviceOptions {
  uint64_t n_bytes = 0;  // of its own memory
  double link_gbps = 25.0;
  double delay_us = 10.0;                                     // of a copy, before its first byte
  uint64_t pin_limit = std::numeric_limits<uint64_t>::max();  // pinned and registered, in all
  Clock clock = Clock::wall;
  int n_threads = 1;  // that its operations compute with

  // What only the virtual clock needs to know: the rates at which the device reads its own memory
  // and the host's workers read theirs, what the host's answer costs besides their work, what the
  // launches of a layer cost and what its experts cost besides their bytes, and how many bytes the
  // workers cannot read for each that crosses the link meanwhile.
  double device_gbps = 500.0;
  double cpu_gbps = 60.0;
  double handshake_us = 18.0;
  double layer_us = 10.0;
  double experts_us = 0.0;
  double lookup_us = 0.0;  // of a layer whose experts may be missing
  double link_us = 0.0;    // of a layer that reads some over the link, besides their bytes
  double copy_interference = 0.4;

  // Tests inject faults here: called before every copy with the number of those before it; what it
  // throws is what the copy ends with.
  std::function<void(int64_t n_before)> before_copy;

  // Told of all that crosses the link, in its order, one at a time; may not ask the device.
  std::function<void(const LinkUse&)> on_link_use = {};

  // Told when the host begins to wait for a stream, by its name; and when it submits anything to
  // one: an operation, a copy, an event, or a whole recording.
  std::function<void(const std::string& stream)> on_finish = {};
  std::function<void(const std::string& stream)> on_submit = {};

  // Told of host memory that is registered, and again when that ends.
  std::function<void(std::span<const std::byte> bytes, bool begins)> on_register = {};
};

std::unique_ptr<Device> make_ram_device(RamDeviceOptions options);

}  // namespace sluice::backend
