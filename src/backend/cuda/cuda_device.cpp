// See cuda_device.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/cuda_stream.h"
#include "base/patience.h"
#include "base/units.h"
#include "base/wall_clock.h"

namespace sluice::backend::cuda {
namespace {

constexpr uint64_t kFaultBytes = 64;
constexpr uint64_t kLine = 128;  // kernels read whole lines: what stands behind does not matter

// A release cannot throw; after an error that CUDA keeps it fails like everything else.
void free_device(int device, void* block) {
  static_cast<void>(cudaSetDevice(device));
  static_cast<void>(cudaFree(block));
  static_cast<void>(cudaGetLastError());
}

void free_host(int device, void* block) {
  static_cast<void>(cudaSetDevice(device));
  static_cast<void>(cudaFreeHost(block));
  static_cast<void>(cudaGetLastError());
}

class CudaRegistration final : public Registration {
 public:
  CudaRegistration(int device, void* bytes, const std::byte* address)
      : device_(device), bytes_(bytes), address_(address) {}
  ~CudaRegistration() override {
    static_cast<void>(cudaSetDevice(device_));
    static_cast<void>(cudaHostUnregister(bytes_));
    static_cast<void>(cudaGetLastError());
  }
  CudaRegistration(const CudaRegistration&) = delete;
  CudaRegistration& operator=(const CudaRegistration&) = delete;
  const std::byte* device_address() const override { return address_; }

 private:
  int device_;
  void* bytes_;
  const std::byte* address_;
};

}  // namespace

CudaDevice::CudaDevice(int index) : probe_(probe_gpu(index)) {
  if (const std::string problem = problem_of(probe_); !problem.empty()) {
    throw Error(Errc::device, problem);
  }
}

void CudaDevice::make_current() const { CHECK_CUDA(cudaSetDevice(probe_.index)); }

uint64_t CudaDevice::free_bytes() const {
  make_current();
  size_t n_free = 0, n_all = 0;
  CHECK_CUDA(cudaMemGetInfo(&n_free, &n_all));
  return n_free;
}

std::string CudaDevice::shortage(MemoryKind kind, uint64_t n_bytes) const {
  if (kind == MemoryKind::device) {
    return cat("GPU ", probe_.index, " (", probe_.card, ") cannot allocate ", format_bytes(n_bytes),
               " of its own memory; it has ", format_bytes(probe_.n_bytes), ", of which ",
               format_bytes(free_bytes()), " are free");
  }
  return cat("the system does not give ", format_bytes(n_bytes), " of pinned memory for GPU ",
             probe_.index, " (", probe_.card, ")");
}

// Mapped memory is cached: the host reads it too. It begins as zeros, as words do.
Buffer CudaDevice::allocate(MemoryKind kind, uint64_t n_bytes) {
  make_current();
  const int device = probe_.index;
  const uint64_t n_asked = round_up(std::max<uint64_t>(n_bytes, 1), kLine);
  void* block = nullptr;
  const bool is_own = kind == MemoryKind::device;
  const cudaError_t status =
      is_own ? cudaMalloc(&block, n_asked)
             : cudaHostAlloc(&block, n_asked, cudaHostAllocPortable | cudaHostAllocMapped);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Error(Errc::out_of_memory, shortage(kind, n_bytes));
  }
  check_cuda(status, is_own ? "cudaMalloc(&block, n_asked)" : "cudaHostAlloc(&block, n_asked)");
  auto* const data = static_cast<std::byte*>(block);
  if (is_own) return {data, n_bytes, [device](std::byte* p) { free_device(device, p); }};
  Buffer buffer(data, n_bytes, [device](std::byte* p) { free_host(device, p); });
  void* seen = nullptr;
  CHECK_CUDA(cudaHostGetDevicePointer(&seen, block, 0));
  if (seen != block) {
    throw Error(Errc::device, cat("GPU ", device, " (", probe_.card, ") sees mapped memory at ",
                                  seen, ", the host at ", block, "; they must be the same"));
  }
  if (kind == MemoryKind::mapped) std::memset(block, 0, n_asked);
  return buffer;
}

// A mapping that may only be read is refused without the flag, and a card or driver that does not
// know the flag refuses it.
std::unique_ptr<Registration> CudaDevice::register_host(std::span<const std::byte> bytes) {
  make_current();
  void* const first = const_cast<std::byte*>(bytes.data());
  constexpr unsigned kFlags = cudaHostRegisterPortable | cudaHostRegisterMapped;
  for (const unsigned flags : {kFlags | cudaHostRegisterReadOnly, kFlags}) {
    if (cudaHostRegister(first, bytes.size(), flags) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      continue;
    }
    void* seen = nullptr;
    if (cudaHostGetDevicePointer(&seen, first, 0) == cudaSuccess) {
      return std::make_unique<CudaRegistration>(probe_.index, first,
                                                static_cast<const std::byte*>(seen));
    }
    static_cast<void>(cudaHostUnregister(first));
    static_cast<void>(cudaGetLastError());
  }
  return nullptr;
}

std::unique_ptr<Stream> CudaDevice::make_stream(std::string name) {
  return std::make_unique<CudaStream>(probe_.index, std::move(name),
                                      allocate(MemoryKind::mapped, kFaultBytes));
}

std::unique_ptr<Event> CudaDevice::make_event() {
  return std::make_unique<CudaEvent>(probe_.index);
}

std::unique_ptr<DeviceOps> CudaDevice::make_ops(Stream& stream, const MailboxView& mailbox,
                                                std::span<std::byte> scratch) {
  return std::make_unique<CudaOps>(*this, static_cast<CudaStream&>(stream), mailbox, scratch);
}

double CudaDevice::now() const { return wall_seconds(); }

uint64_t CudaDevice::read(const uint64_t* word) const {
  return std::atomic_ref(*const_cast<uint64_t*>(word)).load(std::memory_order_acquire);
}

bool CudaDevice::await(const uint64_t* word, uint64_t value,
                       const std::function<bool()>& gives_up) {
  for (Patience patience; read(word) != value;) {
    if (gives_up()) return false;
    patience.wait();
  }
  return true;
}

}  // namespace sluice::backend::cuda

namespace sluice::backend {

std::unique_ptr<Device> make_cuda_device(int index) {
  return std::make_unique<cuda::CudaDevice>(index);
}

}  // namespace sluice::backend
