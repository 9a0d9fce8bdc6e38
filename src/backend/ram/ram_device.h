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

#include "backend/ram_device_options.h"

namespace sluice::backend {

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
  std::unique_ptr<DeviceOps> make_ops(Stream& stream, const MailboxView& mailbox,
                                      std::span<std::byte> scratch) override;
  void host_worked(double seconds) override;
  // In virtual time: as it was at the time that the reader's work has reached.
  uint64_t read(const uint64_t* word) const override;
  bool await(const uint64_t* word, uint64_t value, const std::function<bool()>& gives_up) override;

  const RamDeviceOptions& options() const;
  uint64_t pinned_bytes() const;  // and registered
  int n_blocks() const;           // of its own memory
  uint64_t bytes_out() const;     // that copies have brought from its memory to the host's
  // Whether all of it is the device's own memory, and so may be read by its work; by either kind of
  // address.
  bool owns(std::span<const std::byte> bytes) const;

  // By work that runs on a stream: what time its work has reached.
  double now() const override;
  // By such work, on the clock in use: until when the link is taken; when bytes that set out over
  // the link now have arrived (a read of host memory); and that the work is done at a certain time,
  // not before.
  double link_free_at() const;
  double cross_link(uint64_t n_bytes);
  void stand_until(double seconds);
  // By such work: sets a word, now.
  void tell(uint64_t* word, uint64_t value);
  // Virtual time: the work takes so long. Ignored on the wall's clock.
  static void spend(double seconds);
  // When all the work of a finished stream was done, from the device's start on.
  static double seconds(const Stream& stream);

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;  // outlives the device in its buffers and streams
};

}  // namespace sluice::backend
