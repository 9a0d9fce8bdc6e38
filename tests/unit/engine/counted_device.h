// A device that counts what is asked of its streams, may refuse to record it, lets somebody hear
// its operations, and is otherwise the one it was given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device_ops.h"
#include "base/error.h"
#include "unit/engine/heard_ops.h"

namespace sluice::engine::test {

class CountedDevice final : public backend::Device {
 public:
  struct Counts {
    int n_replays = 0;
    int n_waits = 0;   // of the host
    int n_others = 0;  // copies, words and calls outside of recordings
  };

  explicit CountedDevice(std::unique_ptr<backend::Device> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  uint64_t free_bytes() const override { return inner_->free_bytes(); }
  backend::Buffer allocate(backend::MemoryKind kind, uint64_t n_bytes) override {
    return inner_->allocate(kind, n_bytes);
  }
  std::unique_ptr<backend::Registration> register_host(std::span<const std::byte> bytes) override {
    return inner_->register_host(bytes);
  }
  std::unique_ptr<backend::Stream> make_stream(std::string name) override {
    return std::make_unique<CountedStream>(inner_->make_stream(std::move(name)), *this);
  }
  std::unique_ptr<backend::Event> make_event() override { return inner_->make_event(); }
  std::unique_ptr<backend::DeviceOps> make_ops(backend::Stream& stream,
                                               const backend::MailboxView& mailbox,
                                               std::span<std::byte> scratch) override {
    auto ops = inner_->make_ops(static_cast<CountedStream&>(stream).inner(), mailbox, scratch);
    if (!on_attend) return ops;
    return std::make_unique<HeardOps>(std::move(ops), on_attend);
  }
  double now() const override { return inner_->now(); }
  void host_worked(double seconds) override { inner_->host_worked(seconds); }
  uint64_t read(const uint64_t* word) const override { return inner_->read(word); }
  bool await(const uint64_t* word, uint64_t value, const std::function<bool()>& gives_up) override {
    return inner_->await(word, value, gives_up);
  }

  Counts counts;
  OnAttend on_attend;               // of operations made from then on
  bool refuses_recordings = false;  // a copy that is recorded throws Errc::device

 private:
  class CountedStream final : public backend::Stream {
   public:
    CountedStream(std::unique_ptr<backend::Stream> inner, CountedDevice& device)
        : inner_(std::move(inner)), device_(device), counts_(device.counts) {}
    backend::Stream& inner() { return *inner_; }

    void copy(std::byte* to, const std::byte* from, uint64_t n_bytes) override {
      ++counts_.n_others;
      if (is_recording_ && device_.refuses_recordings) throw Error(Errc::device, "not recorded");
      inner_->copy(to, from, n_bytes);
    }
    void fill(std::byte* to, std::byte value, uint64_t n_bytes) override {
      ++counts_.n_others;
      inner_->fill(to, value, n_bytes);
    }
    void write(std::byte* to, std::span<const std::byte> value) override {
      ++counts_.n_others;
      inner_->write(to, value);
    }
    void set(uint64_t* word, uint64_t value) override {
      ++counts_.n_others;
      inner_->set(word, value);
    }
    void await(const uint64_t* word, uint64_t value, const uint64_t* ended) override {
      ++counts_.n_others;
      inner_->await(word, value, ended);
    }
    void call(std::function<void()> work) override {
      ++counts_.n_others;
      inner_->call(std::move(work));
    }
    void record(backend::Event& event) override { inner_->record(event); }
    void wait(const backend::Event& event) override { inner_->wait(event); }
    void begin_recording() override {
      is_recording_ = true;
      inner_->begin_recording();
    }
    std::unique_ptr<backend::Recording> end_recording() override {
      is_recording_ = false;
      return inner_->end_recording();
    }
    void replay(const backend::Recording& recording) override {
      ++counts_.n_replays;
      inner_->replay(recording);
    }
    bool has_failed() const override { return inner_->has_failed(); }
    void finish() override {
      ++counts_.n_waits;
      inner_->finish();
    }

   private:
    std::unique_ptr<backend::Stream> inner_;
    CountedDevice& device_;
    Counts& counts_;
    bool is_recording_ = false;
  };

  std::unique_ptr<backend::Device> inner_;
};

}  // namespace sluice::engine::test
