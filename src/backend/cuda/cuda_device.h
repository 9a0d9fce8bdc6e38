// A GPU: its memory, streams and events (device.h), by the CUDA runtime. Every call is checked, and
// a failed one is quoted in the Error. Streams and buffers may outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/cuda_probe.h"
#include "backend/device.h"

namespace sluice::backend::cuda {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index);

  std::string name() const override { return name_of(probe_); }
  uint64_t free_bytes() const override;
  Buffer allocate(MemoryKind kind, uint64_t n_bytes) override;
  std::unique_ptr<Registration> register_host(std::span<const std::byte> bytes) override;
  std::unique_ptr<Stream> make_stream(std::string name) override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<DeviceOps> make_ops(Stream& stream, const MailboxView& mailbox,
                                      std::span<std::byte> scratch) override;
  double now() const override;
  void host_worked(double) override {}
  uint64_t read(const uint64_t* word) const override;
  bool await(const uint64_t* word, uint64_t value, const std::function<bool()>& gives_up) override;

  void make_current() const;  // of the calling thread

 private:
  std::string shortage(MemoryKind kind, uint64_t n_bytes) const;

  CudaProbe probe_;
};

}  // namespace sluice::backend::cuda
