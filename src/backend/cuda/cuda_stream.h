// A stream of a GPU, its events, and its recordings, which are CUDA graphs.
//
// After a fault calls to the host, words, written bytes and whatever is asked for later are passed
// over. Copies and kernels that were asked for before the fault are not taken back; since no word
// follows them, nobody uses what they made. After an error that CUDA keeps for the rest of the
// process every stream fails again at each try, each time as an Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <exception>
#include <list>
#include <mutex>

#include "backend/cuda/cuda_error.h"
#include "backend/device.h"

namespace sluice::backend::cuda {

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int device);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  bool is_done() const override;
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  // fault_word: mapped, one word; whether the stream has failed, for its kernels to see.
  CudaStream(int device, std::string name, Buffer fault_word);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy(std::byte* to, const std::byte* from, uint64_t n_bytes) override;
  void fill(std::byte* to, std::byte value, uint64_t n_bytes) override;
  void write(std::byte* to, std::span<const std::byte> value) override;
  void set(uint64_t* word, uint64_t value) override;
  void call(std::function<void()> work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void await(const uint64_t* word, uint64_t value, const uint64_t* ended) override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void replay(const Recording& recording) override;
  bool has_failed() const override;
  void finish() override;

  // By the device's operations: work launches kernels on the stream. What it throws is a fault of
  // the stream.
  template <typename Work>
  void enqueue(const Work& work) {
    if (has_fault()) return;
    attempt([&] { work(stream_); });
  }
  // What they hold back while they are recorded, and must be launched before the recording ends.
  void set_before_end(std::function<void()> work) { before_end_ = std::move(work); }
  cudaStream_t handle() const { return stream_; }
  // A number of its own for each recording; 0 where none is being made.
  uint64_t recording() const { return is_recording_ ? n_recordings_ : 0; }

 private:
  struct HostCall {
    CudaStream* stream = nullptr;
    std::function<void()> work;
    std::atomic<bool> is_done = true;  // or it was passed over
  };
  struct Recorded;

  // The device is the calling thread's, and threads differ.
  template <typename Work>
  void attempt(const Work& work) {
    try {
      CHECK_CUDA(cudaSetDevice(device_));
      work();
    } catch (...) {
      keep_fault(std::current_exception());
    }
  }
  static void run_call(void* call);
  HostCall& kept_call(std::function<void()> work);
  bool has_fault() const;
  void keep_fault(std::exception_ptr fault);
  std::exception_ptr take_fault();
  [[noreturn]] void tell(const std::exception_ptr& fault) const;

  const int device_;
  const std::string name_;
  const Buffer fault_word_;
  cudaStream_t stream_ = nullptr;
  bool is_recording_ = false;
  std::function<void()> before_end_;
  uint64_t n_recordings_ = 0;
  std::list<HostCall> calls_;           // outside of recordings; used again when done
  std::list<HostCall> recorded_calls_;  // of the recording that is being made
  mutable std::mutex mutex_;
  std::exception_ptr fault_;
};

}  // namespace sluice::backend::cuda
