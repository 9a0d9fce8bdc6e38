// What every device promises, by the GPU; and what a GPU alone has: memory that both sides see at
// one address, files that are registered as they are mapped, and errors of CUDA's own.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "gpu/device.h"
#include "support/device_promises.h"

namespace sluice::backend::test {
namespace {

struct MakeGpu {
  static std::unique_ptr<backend::Device> make() {
    int n_devices = 0;
    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) return nullptr;
    return make_cuda_device(0);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, DevicePromises, MakeGpu);

using CudaDeviceTest = cuda::test::DeviceTest;

TEST_F(CudaDeviceTest, NamesTheCardAndTheDriver) {
  const auto device = make_cuda_device(0);
  cudaDeviceProp card{};
  CHECK_CUDA(cudaGetDeviceProperties(&card, 0));
  EXPECT_NE(device->name().find(card.name), std::string::npos) << device->name();
  EXPECT_NE(device->name().find("driver for CUDA 1"), std::string::npos) << device->name();
}

TEST_F(CudaDeviceTest, AGpuThatIsNotThereIsNamed) {
  const std::string error = error_of(Errc::device, [] { make_cuda_device(99); });
  EXPECT_NE(error.find("there is no GPU 99"), std::string::npos) << error;
}

// As experts are: a file that is only read, mapped as it is.
TEST_F(CudaDeviceTest, RegistersAFileThatIsMappedToBeRead) {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("main");
  const std::vector<std::byte> bytes = numbered_bytes(2 * kMiB, 3);
  std::FILE* const file = std::tmpfile();
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fflush(file);
  void* const mapped = mmap(nullptr, bytes.size(), PROT_READ, MAP_SHARED, fileno(file), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto* const data = static_cast<const std::byte*>(mapped);
  {
    const auto lease = device->register_host({data, bytes.size()});
    ASSERT_NE(lease, nullptr);
    const Buffer own = device->allocate(MemoryKind::device, bytes.size());
    const Buffer seen = device->allocate(MemoryKind::pinned, bytes.size());
    stream->copy(own.data(), lease->device_address(), bytes.size());
    stream->copy(seen.data(), own.data(), bytes.size());
    stream->finish();
    EXPECT_EQ(std::memcmp(seen.data(), bytes.data(), bytes.size()), 0);
  }
  munmap(mapped, bytes.size());
  std::fclose(file);
}

// What the system refuses leaves nothing behind.
TEST_F(CudaDeviceTest, WhatCannotBeRegisteredIsRefusedAndForgotten) {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("main");
  const std::vector<std::byte> bytes(kMiB);
  const auto lease = device->register_host(bytes);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(device->register_host(bytes), nullptr);  // twice the same
  const Buffer own = device->allocate(MemoryKind::device, 64);
  stream->fill(own.data(), std::byte{1}, 64);
  stream->write(own.data(), numbered_bytes(8, 1));
  EXPECT_NO_THROW(stream->finish());
}

TEST_F(CudaDeviceTest, AnEventOfARecordingIsReachedByEachReplay) {
  const auto device = make_cuda_device(0);
  const auto first = device->make_stream("first"), second = device->make_stream("second");
  const auto event = device->make_event();
  std::atomic<int> n_done = 0;
  first->begin_recording();
  first->call([&] { ++n_done; });
  first->record(*event);
  const auto recording = first->end_recording();
  for (int i = 1; i <= 3; ++i) {
    int seen = 0;
    first->replay(*recording);
    second->wait(*event);
    second->call([&] { seen = n_done; });
    second->finish();
    EXPECT_EQ(seen, i);
  }
  first->finish();
}

// A call that CUDA refuses is told by finish() with its text, once; the stream works on.
TEST_F(CudaDeviceTest, ARefusedCallIsQuotedOnce) {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("copy");
  const Buffer own = device->allocate(MemoryKind::device, 64);
  const Buffer word = device->allocate(MemoryKind::mapped, 8);
  stream->fill(own.data() + (uint64_t{1} << 46), std::byte{1}, 64);
  stream->set(word.as<uint64_t>(), 1);
  EXPECT_TRUE(stream->has_failed());
  const std::string error = error_of(Errc::device, [&] { stream->finish(); });
  EXPECT_NE(error.find("stream 'copy': CUDA: cudaMemsetAsync("), std::string::npos) << error;
  EXPECT_EQ(device->read(word.as<uint64_t>()), 0u);
  stream->set(word.as<uint64_t>(), 2);
  EXPECT_NO_THROW(stream->finish());
  EXPECT_EQ(device->read(word.as<uint64_t>()), 2u);
}

TEST_F(CudaDeviceTest, ARefusedCallInARecordingIsToldAtItsEnd) {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("main");
  const Buffer own = device->allocate(MemoryKind::device, 64);
  stream->begin_recording();
  stream->call([] {});
  stream->fill(own.data() + (uint64_t{1} << 46), std::byte{1}, 64);
  const std::string error = error_of(Errc::device, [&] { stream->end_recording(); });
  EXPECT_NE(error.find("stream 'main': CUDA: cudaGraphInstantiate("), std::string::npos) << error;
  stream->begin_recording();
  stream->fill(own.data(), std::byte{1}, 64);
  const auto recording = stream->end_recording();
  stream->replay(*recording);
  EXPECT_NO_THROW(stream->finish());
}

// In a process of its own: CUDA keeps this error for the rest of it.
TEST_F(CudaDeviceTest, ALostDeviceFailsEveryRequestAndNotTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose_it = [] {
    const auto device = make_cuda_device(0);
    const auto stream = device->make_stream("main"), other = device->make_stream("other");
    const auto event = device->make_event();
    const Buffer own = device->allocate(MemoryKind::device, 64);
    stream->set(reinterpret_cast<uint64_t*>(uint64_t{1} << 46), 1);  // nothing is there
    stream->record(*event);
    int n_told = 0;
    for (Stream* s : {stream.get(), other.get(), stream.get()}) {
      try {
        s->fill(own.data(), std::byte{1}, 64);
        s->finish();
      } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        n_told += e.code() == Errc::device;
      }
    }
    std::exit(n_told == 3 && event->is_done() ? 42 : 1);
  };
  EXPECT_EXIT(lose_it(), testing::ExitedWithCode(42), "stream 'main': CUDA: cuda");
}

}  // namespace
}  // namespace sluice::backend::test
