// A stream of the RAM device: a thread that takes its work from a queue; and what streams share:
// how much memory is taken, and when the link is free again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/ram/ram_device.h"
#include "base/inline_function.h"

namespace sluice::backend {

struct RamDevice::Shared {
  explicit Shared(RamDeviceOptions o) : options(std::move(o)) {}

  // When a copy that could begin at `now` is done, one after another on the link.
  double book_link(double now, uint64_t n_bytes, const std::byte* to);
  // Whether all of it was allocated as memory of that kind.
  bool is_in(MemoryKind kind, std::span<const std::byte> bytes);
  void set(uint64_t* word, uint64_t value, double seconds);
  uint64_t read(const uint64_t* word);
  double set_at(const uint64_t* word);  // when its newest value came
  // As the calling work's stream has reached it; to others, as far as the host has waited.
  double now();

  const RamDeviceOptions options;
  std::mutex mutex;
  uint64_t n_device = 0;  // bytes taken
  uint64_t n_pinned = 0;
  struct Block {
    uint64_t n_bytes;
    MemoryKind kind;
  };
  std::map<const std::byte*, Block> blocks;  // that were allocated, by their beginning
  // What streams set: how often they were asked to and did, and when the newest value came.
  struct Word {
    uint64_t n_asked = 0, n_set = 0;
    uint64_t value = 0, before = 0;
    double seconds = 0.0;
  };
  std::map<const uint64_t*, Word> words;
  std::condition_variable word_changed;
  double link_free_at = 0.0;  // in seconds of the clock in use
  double host_seconds = 0.0;  // virtual time up to which the host has waited
  int64_t n_copies = 0;
  uint64_t n_out = 0;  // bytes copied from the device's memory to the host's
};

class RamEvent final : public Event {
 public:
  explicit RamEvent(std::shared_ptr<RamDevice::Shared> device) : device_(std::move(device)) {}

  // In virtual time: done before the time up to which the host has waited.
  bool is_done() const override;

 private:
  friend class RamStream;
  struct State {
    void wait_for(uint32_t number) const;

    std::atomic<uint32_t> n_done = 0;
    std::atomic<double> seconds = 0.0;  // of the newest that is done
  };
  std::shared_ptr<RamDevice::Shared> device_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  uint32_t n_recorded_ = 0;
};

class RamStream final : public Stream {
 public:
  RamStream(std::shared_ptr<RamDevice::Shared> device, std::string name);
  ~RamStream() override;

  void copy(std::byte* to, const std::byte* from, uint64_t n_bytes) override;
  void fill(std::byte* to, std::byte value, uint64_t n_bytes) override;
  void write(std::byte* to, std::span<const std::byte> value) override;
  void set(uint64_t* word, uint64_t value) override;
  void call(std::function<void()> work) override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void replay(const Recording& recording) override;
  // By the device's operations. Large enough for the views of any; a step that is not replayed asks
  // for no memory.
  using Work = InlineFunction<768>;
  void enqueue(Work work) { push({std::move(work)}); }
  void record(Event& event) override;
  void wait(const Event& event) override;
  void await(const uint64_t* word, uint64_t value, const uint64_t* ended) override;
  bool has_failed() const override;
  void finish() override;

  static double* own_seconds();  // of the stream whose thread this is; null on other threads
  double seconds() const { return seconds_; }

 private:
  struct Command;
  struct Recorded;

  // After a fault nothing is computed any more until finish() has reported it; but events are still
  // reached, or others would wait for ever.
  struct Command {
    Work call;
    bool runs_after_fault = false;
    double not_before = 0.0;  // virtual time at which it was asked for
  };

  struct Recorded final : Recording {
    std::vector<Command> commands;
  };

  void push(Command command);
  Command pop();
  void work();
  void copy_now(std::byte* to, const std::byte* from, uint64_t n_bytes);

  const std::shared_ptr<RamDevice::Shared> device_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> queue_;  // a ring: n_queued_ from first_ on
  size_t first_ = 0, n_queued_ = 0;
  std::unique_ptr<Recorded> recording_;  // where one is being made
  bool is_busy_ = false;
  bool stopping_ = false;
  std::exception_ptr fault_;
  double seconds_ = 0.0;  // virtual time; of the stream's thread while it works
  std::thread thread_;    // last: it uses all of the above
};

}  // namespace sluice::backend
