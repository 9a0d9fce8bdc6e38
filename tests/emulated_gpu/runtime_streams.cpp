// CUDA's runtime on the emulated card: memory, streams, events and graphs.
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "emulated_gpu/memory.h"
#include "emulated_gpu/runtime.h"

namespace sluice::emulated_gpu {
namespace {

std::mutex streams_mutex;
std::set<EmulatedStream*>& streams() {
  static auto* const all = new std::set<EmulatedStream*>;
  return *all;
}

struct EmulatedEvent {
  std::mutex mutex;
  std::shared_ptr<Mark> mark;
};
EmulatedEvent& event_of(cudaEvent_t event) { return *reinterpret_cast<EmulatedEvent*>(event); }

cudaError_t in_order(cudaStream_t stream, std::function<void()> run) {
  stream_of(stream).give([run = std::move(run)](EmulatedStream& s) { s.add({{}, run, {}}); });
  return told(cudaSuccess);
}

}  // namespace

EmulatedStream& stream_of(cudaStream_t stream) {
  if (stream && stream != cudaStreamLegacy) return *reinterpret_cast<EmulatedStream*>(stream);
  static auto* const legacy = [] {
    auto* const made = new EmulatedStream;
    const std::lock_guard lock(streams_mutex);
    streams().insert(made);
    return made;
  }();
  return *legacy;
}

}  // namespace sluice::emulated_gpu

using namespace sluice::emulated_gpu;

extern "C" {

// What nobody has written reads as a pattern; large blocks stay as the system gives them.
cudaError_t cudaMalloc(void** block, size_t n_bytes) {
  if (device_bytes_used() + n_bytes > card_size().vram_bytes)
    return told(cudaErrorMemoryAllocation);
  void* const made = mmap(nullptr, n_bytes + 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return told(cudaErrorMemoryAllocation);
  if (n_bytes <= size_t{64} << 20) std::memset(made, 0xcd, n_bytes);
  add_region(made, n_bytes, MemoryOf::device);
  *block = made;
  return told(cudaSuccess);
}
cudaError_t cudaFree(void* block) {
  if (!block) return told(cudaSuccess);
  cudaDeviceSynchronize();
  const size_t n_bytes = region_bytes(block);
  if (!is_device_memory(block) || !remove_region(block)) return told(cudaErrorInvalidValue);
  munmap(block, n_bytes + 4096);
  return told(cudaSuccess);
}
cudaError_t cudaHostAlloc(void** block, size_t n_bytes, unsigned) {
  *block = std::aligned_alloc(4096, (n_bytes + 4095) / 4096 * 4096);
  if (!*block) return told(cudaErrorMemoryAllocation);
  add_region(*block, n_bytes, MemoryOf::host);
  return told(cudaSuccess);
}
cudaError_t cudaFreeHost(void* block) {
  if (block && !remove_region(block)) return told(cudaErrorInvalidValue);
  std::free(block);
  return told(cudaSuccess);
}
cudaError_t cudaHostRegister(void* first, size_t n_bytes, unsigned) {
  if (is_known(reinterpret_cast<uint64_t>(first), 1))
    return told(cudaErrorHostMemoryAlreadyRegistered);
  add_region(first, n_bytes, MemoryOf::host);
  return told(cudaSuccess);
}
cudaError_t cudaHostUnregister(void* first) {
  return told(remove_region(first) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostGetDevicePointer(void** seen, void* block, unsigned) {
  *seen = block;
  return told(is_known(reinterpret_cast<uint64_t>(block), 1) ? cudaSuccess : cudaErrorInvalidValue);
}

// Memory that is not pinned is read before the call returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind,
                            cudaStream_t stream) {
  const bool is_pinned = n == 0 || is_known(reinterpret_cast<uint64_t>(from), n);
  if (is_pinned) {
    const cudaError_t status = in_order(stream, [=] { std::memcpy(to, from, n); });
    if (n > 0 && !is_known(reinterpret_cast<uint64_t>(to), n) && !stream_of(stream).recording)
      stream_of(stream).finish();
    return told(status);
  }
  const auto* const first = static_cast<const std::byte*>(from);
  auto kept = std::make_shared<std::vector<std::byte>>(first, first + n);
  return in_order(stream, [=] { std::memcpy(to, kept->data(), n); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return in_order(stream, [=] {
    for (size_t i = 0; i < height; ++i) {
      std::memcpy(static_cast<std::byte*>(to) + i * to_pitch,
                  static_cast<const std::byte*>(from) + i * from_pitch, width);
    }
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t stream) {
  if (n > 0 && !is_known(reinterpret_cast<uint64_t>(to), n)) {
    EmulatedStream& s = stream_of(stream);
    if (!s.recording) return told(cudaErrorInvalidValue);
    s.recording->push_back(nullptr);  // told when the graph is made
    return told(cudaSuccess);
  }
  return in_order(stream, [=] { std::memset(to, value, n); });
}
cudaError_t cudaMemset(void* to, int value, size_t n) {
  return cudaMemsetAsync(to, value, n, nullptr);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  const cudaError_t status = cudaMemcpyAsync(to, from, n, kind, nullptr);
  stream_of(nullptr).finish();
  return told(status);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  auto* const made = new EmulatedStream;
  const std::lock_guard lock(streams_mutex);
  streams().insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return told(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  EmulatedStream& s = stream_of(stream);
  s.finish();
  {
    const std::lock_guard lock(streams_mutex);
    streams().erase(&s);
  }
  delete &s;
  return told(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream_of(stream).finish();
  return told(cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (has_card_fault()) return told(cudaErrorIllegalAddress);
  return stream_of(stream).is_idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  std::vector<EmulatedStream*> all;
  {
    const std::lock_guard lock(streams_mutex);
    all.assign(streams().begin(), streams().end());
  }
  for (EmulatedStream* s : all) s->finish();
  return told(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* with) {
  return in_order(stream, [=] {
    if (!has_card_fault()) call(with);
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new EmulatedEvent);
  return told(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return told(cudaSuccess);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  stream_of(stream).give([event](EmulatedStream& s) {
    auto mark = std::make_shared<Mark>();
    {
      const std::lock_guard lock(event_of(event).mutex);
      event_of(event).mark = mark;
    }
    s.add({{}, [mark] { mark->is_done = true; }, {}});
  });
  return told(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (has_card_fault()) return told(cudaErrorIllegalAddress);
  const std::lock_guard lock(event_of(event).mutex);
  return !event_of(event).mark || event_of(event).mark->is_done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream_of(stream).give([event](EmulatedStream& s) {
    std::shared_ptr<Mark> mark;
    {
      const std::lock_guard lock(event_of(event).mutex);
      mark = event_of(event).mark;
    }
    if (mark) s.add({{}, [] {}, [mark] { return mark->is_done.load(); }});
  });
  return told(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream_of(stream).recording = std::make_unique<EmulatedStream::Recorded>();
  return told(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(stream_of(stream).recording.release());
  return told(cudaSuccess);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* n_dependencies) {
  EmulatedStream::Recorded* const recorded = stream_of(stream).recording.get();
  *status = recorded ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id) *id = 1;
  if (graph) *graph = reinterpret_cast<cudaGraph_t>(recorded);
  if (dependencies) *dependencies = nullptr;
  if (edges) *edges = nullptr;
  if (n_dependencies) *n_dependencies = 0;
  return told(cudaSuccess);
}
// How many there are; a node itself is nothing that could be asked.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* n_nodes) {
  if (nodes) return told(cudaErrorNotSupported);
  *n_nodes = reinterpret_cast<EmulatedStream::Recorded*>(graph)->size();
  return told(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const auto& recorded = *reinterpret_cast<EmulatedStream::Recorded*>(graph);
  for (const auto& op : recorded) {
    if (!op) return told(cudaErrorInvalidValue);
  }
  *exec = reinterpret_cast<cudaGraphExec_t>(new EmulatedStream::Recorded(recorded));
  return told(cudaSuccess);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return told(cudaSuccess); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const auto& op : *reinterpret_cast<EmulatedStream::Recorded*>(exec)) op(stream_of(stream));
  return told(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<EmulatedStream::Recorded*>(graph);
  return told(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<EmulatedStream::Recorded*>(exec);
  return told(cudaSuccess);
}

}  // extern "C"
