// See cuda_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_stream.h"

#include <algorithm>

#include "backend/cuda/stream_words.h"
#include "base/check.h"

namespace sluice::backend::cuda {

CudaEvent::CudaEvent(int device) {
  CHECK_CUDA(cudaSetDevice(device));
  CHECK_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }

// After an error that CUDA keeps it is reached, as after any fault.
bool CudaEvent::is_done() const { return cudaEventQuery(event_) != cudaErrorNotReady; }

struct CudaStream::Recorded final : Recording {
  Recorded() = default;
  ~Recorded() override {
    if (exec) static_cast<void>(cudaGraphExecDestroy(exec));
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  cudaGraphExec_t exec = nullptr;
  std::list<HostCall> calls;
};

namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

}  // namespace

CudaStream::CudaStream(int device, std::string name, Buffer fault_word)
    : device_(device), name_(std::move(name)), fault_word_(std::move(fault_word)) {
  CHECK_CUDA(cudaSetDevice(device_));
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaStream::~CudaStream() {
  static_cast<void>(cudaSetDevice(device_));
  if (is_recording_) {
    cudaGraph_t graph = nullptr;
    static_cast<void>(cudaStreamEndCapture(stream_, &graph));
    const Graph dropped(graph);
  }
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
  static_cast<void>(cudaGetLastError());
}

// What is recorded stands in memory that kernels can read: CUDA records no copy of other memory.
void CudaStream::copy(std::byte* to, const std::byte* from, uint64_t n_bytes) {
  enqueue([&](cudaStream_t stream) {
    if (is_recording_ && is_small_copy(to, from, n_bytes)) {
      return copy_bytes(to, from, n_bytes, stream);
    }
    CHECK_CUDA(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream));
  });
}

void CudaStream::fill(std::byte* to, std::byte value, uint64_t n_bytes) {
  enqueue([&](cudaStream_t stream) {
    CHECK_CUDA(cudaMemsetAsync(to, std::to_integer<int>(value), n_bytes, stream));
  });
}

void CudaStream::write(std::byte* to, std::span<const std::byte> value) {
  enqueue([&](cudaStream_t stream) { write_bytes(to, value, fault_word_.as<uint32_t>(), stream); });
}

void CudaStream::set(uint64_t* word, uint64_t value) {
  enqueue([&](cudaStream_t stream) { set_word(word, value, fault_word_.as<uint32_t>(), stream); });
}

// Where a call's work is kept: CUDA does not run it after an error, so it cannot delete itself; and
// what it holds may not be released by CUDA's thread, which may not call CUDA.
CudaStream::HostCall& CudaStream::kept_call(std::function<void()> work) {
  std::list<HostCall>& calls = is_recording_ ? recorded_calls_ : calls_;
  const auto done =
      std::ranges::find_if(calls_, [](const HostCall& c) { return c.is_done.load(); });
  HostCall& call = is_recording_ || done == calls_.end() ? calls.emplace_back() : *done;
  call.stream = this;
  call.work = std::move(work);
  return call;
}

void CudaStream::run_call(void* call) {
  auto& c = *static_cast<HostCall*>(call);
  if (!c.stream->has_fault()) {
    try {
      c.work();
    } catch (...) {
      c.stream->keep_fault(std::current_exception());
    }
  }
  c.is_done = true;
}

void CudaStream::call(std::function<void()> work) {
  if (has_fault()) return;
  HostCall& kept = kept_call(std::move(work));
  enqueue([&](cudaStream_t stream) {
    kept.is_done = false;
    CHECK_CUDA(cudaLaunchHostFunc(stream, run_call, &kept));
  });
}

void CudaStream::record(Event& event) {
  attempt([&] {
    CHECK_CUDA(
        cudaEventRecordWithFlags(static_cast<CudaEvent&>(event).handle(), stream_,
                                 is_recording_ ? cudaEventRecordExternal : cudaEventRecordDefault));
  });
}

void CudaStream::wait(const Event& event) {
  attempt([&] {
    CHECK_CUDA(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(),
                                   is_recording_ ? cudaEventWaitExternal : cudaEventWaitDefault));
  });
}

void CudaStream::await(const uint64_t* word, uint64_t value, const uint64_t* ended) {
  enqueue([&](cudaStream_t stream) {
    await_word(word, value, ended, fault_word_.as<uint32_t>(), stream);
  });
}

// Relaxed: what is not work of a stream (allocations) is done at once, as on any device.
void CudaStream::begin_recording() {
  CHECK(!is_recording_);
  CHECK_CUDA(cudaSetDevice(device_));
  CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  is_recording_ = true;
  ++n_recordings_;
}

// Throws what went wrong while it was made.
std::unique_ptr<Recording> CudaStream::end_recording() {
  CHECK(is_recording_);
  if (before_end_) before_end_();
  is_recording_ = false;
  auto recorded = std::make_unique<Recorded>();
  recorded->calls.swap(recorded_calls_);
  cudaGraph_t captured = nullptr;
  attempt([&] {
    const cudaError_t ended = cudaStreamEndCapture(stream_, &captured);
    const Graph graph(captured);
    check_cuda(ended, "cudaStreamEndCapture(stream_, &captured)");
    if (has_fault()) return;
    CHECK_CUDA(cudaGraphInstantiate(&recorded->exec, graph.get(), 0));
    CHECK_CUDA(cudaGraphUpload(recorded->exec, stream_));
  });
  if (const std::exception_ptr fault = take_fault()) tell(fault);
  return recorded;
}

void CudaStream::replay(const Recording& recording) {
  CHECK(!is_recording_);
  enqueue([&](cudaStream_t stream) {
    CHECK_CUDA(cudaGraphLaunch(static_cast<const Recorded&>(recording).exec, stream));
  });
}

bool CudaStream::has_fault() const {
  const std::lock_guard lock(mutex_);
  return fault_ != nullptr;
}

void CudaStream::keep_fault(std::exception_ptr fault) {
  const std::lock_guard lock(mutex_);
  if (!fault_) fault_ = std::move(fault);
  std::atomic_ref(*fault_word_.as<uint32_t>()).store(1, std::memory_order_release);
}

std::exception_ptr CudaStream::take_fault() {
  const std::lock_guard lock(mutex_);
  std::atomic_ref(*fault_word_.as<uint32_t>()).store(0, std::memory_order_release);
  return std::exchange(fault_, nullptr);
}

// A stream that is recorded cannot be asked.
bool CudaStream::has_failed() const {
  if (has_fault()) return true;
  if (is_recording_) return false;
  const cudaError_t status = cudaStreamQuery(stream_);
  return status != cudaSuccess && status != cudaErrorNotReady;
}

void CudaStream::tell(const std::exception_ptr& fault) const {
  try {
    std::rethrow_exception(fault);
  } catch (const Error& e) {
    throw Error(e.code(), cat("stream '", name_, "': ", e.what()));
  }
}

void CudaStream::finish() {
  CHECK(!is_recording_);
  attempt([&] { CHECK_CUDA(cudaStreamSynchronize(stream_)); });
  for (HostCall& c : calls_) {
    if (c.is_done) c.work = nullptr;
  }
  if (const std::exception_ptr fault = take_fault()) tell(fault);
}

}  // namespace sluice::backend::cuda
