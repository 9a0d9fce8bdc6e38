// What a device offers besides operations (ops.h): memory of three kinds, streams of work and
// copies, events that order them, and words that they set. As much as CUDA has and Vulkan can have,
// nothing more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backend/buffer.h"
#include "base/machine.h"

namespace sluice::backend {

class DeviceOps;
struct MailboxView;

enum class MemoryKind {
  device,  // where the device's work reads fastest; the host never touches it
  pinned,  // host memory from which copies run at the link's full speed
  mapped,  // host memory that both sides read and write while work runs: mailboxes, words, logs
};

// A point in the work of a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool is_done() const = 0;  // true before it was ever recorded
};

// Work that a stream has kept, to be done again and again.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work in order, while the host goes on. Calls come from one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;  // waits for its work

  // Between host and device, or within either. Both places stay as they are until it is done.
  virtual void copy(std::byte* to, const std::byte* from, uint64_t n_bytes) = 0;
  virtual void fill(std::byte* to, std::byte value, uint64_t n_bytes) = 0;
  // A few bytes, which are kept until then: an address, a parameter.
  virtual void write(std::byte* to, std::span<const std::byte> value) = 0;
  // In mapped memory; the device's work reads it at any time, the host by Device::read().
  virtual void set(uint64_t* word, uint64_t value) = 0;
  // By the host, with the host's memory alone: while it runs, the stream stands.
  virtual void call(std::function<void()> work) = 0;

  virtual void record(Event& event) = 0;
  virtual void wait(const Event& event) = 0;  // what follows here begins after it
  // What follows here begins when another stream has set the word to that value, or the host has
  // written anything but 0 to *ended: then what the word stands for did not come. Both in mapped
  // memory.
  virtual void await(const uint64_t* word, uint64_t value, const uint64_t* ended) = 0;

  // What is asked of the stream between begin and end is not done but kept, operations of this
  // stream (device_ops.h) included; replay() does all of it, as one submission: between its parts
  // the host is not needed, unless they themselves wait for it. What varies from one replay to the
  // next is data in memory that the work reads.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
  virtual void replay(const Recording& recording) = 0;  // which outlives the work

  // After a fault the rest of the work is passed over: events are reached, words stay as they are,
  // and finish() tells.
  virtual bool has_failed() const = 0;

  // The host waits for all of it. Throws what went wrong in any of it since the last call.
  virtual void finish() = 0;
};

// A lease on host memory that was allocated elsewhere, for copies at full speed and for reads by
// the device's work; ends with its life.
class Registration {
 public:
  virtual ~Registration() = default;
  virtual const std::byte* device_address() const = 0;  // of its first byte
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  virtual uint64_t free_bytes() const = 0;  // of its own memory

  // Throws Errc::out_of_memory. Device memory is not written yet.
  virtual Buffer allocate(MemoryKind kind, uint64_t n_bytes) = 0;

  // Null where the system refuses, or grants no more.
  virtual std::unique_ptr<Registration> register_host(std::span<const std::byte> bytes) = 0;

  virtual std::unique_ptr<Stream> make_stream(std::string name) = 0;  // named in errors
  virtual std::unique_ptr<Event> make_event() = 0;

  // Operations (device_ops.h) of a stream, which ask the host through that mailbox. `scratch` is
  // device memory that is theirs, as the planner prices it. All outlive the result, which outlives
  // the stream's work.
  virtual std::unique_ptr<DeviceOps> make_ops(Stream& stream, const MailboxView& mailbox,
                                              std::span<std::byte> scratch) = 0;

  // Seconds on the clock in use: the wall's, or a virtual one up to when the host has waited.
  virtual double now() const = 0;
  // On a virtual clock: the host has worked for so long before it goes on. Elsewhere time passes by
  // itself.
  virtual void host_worked(double seconds) = 0;

  // What a stream has set a word to; 0 before it ever did.
  virtual uint64_t read(const uint64_t* word) const = 0;
  // The calling thread of the host waits until the device's work has set a word to that value, or
  // until gives_up(): then false. On a virtual clock the thread's time is that of the word then.
  virtual bool await(const uint64_t* word, uint64_t value,
                     const std::function<bool()>& gives_up) = 0;
};

// The GPUs of this machine, with what is wrong with each; or why there are none for this build.
GpuList list_gpus();

// The GPU of that number, as the driver counts them from 0. Throws Errc::device with the reason
// where there is none that this build can use.
std::unique_ptr<Device> make_cuda_device(int index);

}  // namespace sluice::backend
