// A device made of RAM, so that whatever runs on one can be tested without one: its own memory, of
// which it has only so much, streams that work on threads of their own, and copies that take as
// long as the link says.
//
// It has two clocks. On the wall's, copies really last, and races are real. On the virtual one
// everything is computed as fast as it goes, and every stream adds up what its work would have
// taken on the machine that is described: a copy by the link, other work by what it says of itself
// (spend). Where streams wait for each other's events the later time counts, so the result depends
// on the work alone, as long as one stream at a time has copies to make.
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

  // What only the virtual clock needs to know: the rates at which the device reads its own memory
  // and the host's workers read theirs, what the host's answer costs besides their work, what the
  // launches of a layer cost, and how many bytes the workers cannot read for each that crosses the
  // link meanwhile.
  double device_gbps = 500.0;
  double cpu_gbps = 60.0;
  double handshake_us = 18.0;
  double layer_us = 10.0;
  double copy_interference = 0.4;

  // Tests inject faults here: called before every copy with the number of those before it; what it
  // throws is what the copy ends with.
  std::function<void(int64_t n_before)> before_copy;

  // Told of all that crosses the link, in its order, one at a time; may not ask the device.
  std::function<void(const LinkUse&)> on_link_use = {};

  // Told of host memory that is registered, and again when that ends.
  std::function<void(std::span<const std::byte> bytes, bool begins)> on_register = {};
};

// The host cannot follow addresses of its own memory (ram_address.h).
class RamDevice final : public Device {
 public:
  explicit RamDevice(RamDeviceOptions options);
  ~RamDevice() override;

  std::string name() const override;
  uint64_t free_bytes() const override;
  Buffer allocate(MemoryKind kind, uint64_t n_bytes) override;
  std::unique_ptr<Registration> register_host(std::span<const std::byte> bytes) override;
  std::unique_ptr<Stream> make_stream(std::string name) override;
  std::unique_ptr<Event> make_event() override;
  void host_worked(double seconds) override;
  // In virtual time: as it was at the time that the reader's work has reached.
  uint64_t read(const uint64_t* word) const override;

  const RamDeviceOptions& options() const;
  uint64_t pinned_bytes() const;  // and registered
  // Whether all of it is the device's own memory, and so may be read by its work; by either kind of
  // address.
  bool owns(std::span<const std::byte> bytes) const;

  // By work that runs on a stream, on the clock in use: what time it is (to others, up to when the
  // host has waited); until when the link is taken; when bytes that set out over the link now have
  // arrived (a read of host memory); and that the work is done at a certain time, not before.
  double now() const;
  double link_free_at() const;
  double cross_link(uint64_t n_bytes);
  void stand_until(double seconds);
  // Virtual time: the work takes so long. Ignored on the wall's clock.
  static void spend(double seconds);
  // When all the work of a finished stream was done, from the device's start on.
  static double seconds(const Stream& stream);

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;  // outlives the device in its buffers and streams
};

}  // namespace sluice::backend
