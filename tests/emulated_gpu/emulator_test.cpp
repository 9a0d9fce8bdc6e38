// The emulated card itself: kernels give what they should, and faults that were planted in them
// (planted.cu) are told or show in their results.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <span>

#include "emulated_gpu/card.h"
#include "emulated_gpu/planted.h"

namespace sluice::emulated_gpu {
namespace {

// Memory of the card, of whole ints.
class Numbers {
 public:
  explicit Numbers(size_t n) : n_(n) {
    EXPECT_EQ(cudaMalloc(&data_, n * sizeof(int)), cudaSuccess);
  }
  ~Numbers() { cudaFree(data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  int* data() const { return static_cast<int*>(data_); }
  void set(const std::vector<int>& values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  std::vector<int> get() const {
    std::vector<int> out(n_);
    EXPECT_EQ(cudaMemcpy(out.data(), data_, n_ * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }

 private:
  size_t n_;
  void* data_ = nullptr;
};

std::vector<int> counted(int n) {
  std::vector<int> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// What the card says of a fault that work makes; it goes on afterwards.
std::string fault_of(const std::function<void()>& work) {
  work();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return take_card_fault();
}

TEST(EmulatedGpu, WritesWhereItMayAndNowhereElse) {
  Numbers numbers(40);
  write_numbers(numbers.data(), 40, 64);
  EXPECT_EQ(numbers.get(), counted(40));
  const std::string fault = fault_of([&] { write_numbers(numbers.data(), 41, 64); });
  EXPECT_NE(fault.find("4 bytes at byte 160 of a block of 160"), std::string::npos) << fault;
  EXPECT_NE(fault.find("st.global"), std::string::npos) << fault;
  const std::string unaligned = fault_of([&] {
    write_numbers(reinterpret_cast<int*>(reinterpret_cast<char*>(numbers.data()) + 2), 1, 32);
  });
  EXPECT_NE(unaligned.find("not a multiple of 4"), std::string::npos) << unaligned;
}

TEST(EmulatedGpu, AKernelThatReadsBeforeItsWaitReadsWhatStoodThereBefore) {
  Numbers between(32), to(32);
  between.set(std::vector<int>(32, 1));
  write_and_read(between.data(), to.data(), 2, /*waits_first=*/true);
  EXPECT_EQ(to.get(), std::vector<int>(32, 2));
  write_and_read(between.data(), to.data(), 3, /*waits_first=*/false);
  EXPECT_EQ(to.get(), std::vector<int>(32, 2));
}

TEST(EmulatedGpu, ACopyThatIsNotAwaitedHasNotArrived) {
  Numbers from(128), to(128);
  from.set(counted(128));
  copy_numbers(from.data(), to.data(), true);
  EXPECT_EQ(to.get(), counted(128));
  copy_numbers(from.data(), to.data(), false);
  EXPECT_EQ(to.get(), std::vector<int>(128, -1));
}

TEST(EmulatedGpu, ABarrierThatIsMissingShows) {
  Numbers to(4);
  hand_on(to.data(), true);
  EXPECT_EQ(to.get(), (std::vector<int>{2, 3, 4, 1}));
  hand_on(to.data(), false);
  EXPECT_NE(to.get(), (std::vector<int>{2, 3, 4, 1}));
}

TEST(EmulatedGpu, AFaultNamesWhatItWas) {
  Numbers to(32);
  shuffle(to.data());
  std::vector<int> want = counted(32);
  for (int& n : want) n ^= 1;
  EXPECT_EQ(to.get(), want);
  const std::string fault = fault_of([&] { shuffle(nullptr); });
  for (const char* const part : {"shuffle_kernel", "block (0, 0), warp 0", "st.global", "lane 0"}) {
    EXPECT_NE(fault.find(part), std::string::npos) << part << ": " << fault;
  }
}

TEST(EmulatedGpu, BlocksWaitForEachOtherAndLanesMeetAgain) {
  const int n_blocks = card_size().n_sms;
  Numbers here(1), to(static_cast<size_t>(2 * n_blocks));
  here.set({0});
  meet(reinterpret_cast<unsigned*>(here.data()), to.data(), n_blocks);
  const std::vector<int> got = to.get();
  for (int warp = 0; warp < 2; ++warp) {
    int want = 0;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < (32 * warp + lane) % 7; ++i) want += i % 2 ? i : 10 * i;
    }
    for (int b = 0; b < n_blocks; ++b) EXPECT_EQ(got[static_cast<size_t>(2 * b + warp)], want);
  }
}

}  // namespace
}  // namespace sluice::emulated_gpu
