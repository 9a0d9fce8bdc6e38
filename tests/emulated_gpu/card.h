// The card that the emulated CUDA runtime has: streams that work on their own threads, what is
// recorded, and events. Kernels of a stream that may overlap do: the newest runs first, as far as
// it may, so that one which reads too early reads what is not there yet. SPDX-License-Identifier:
// Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "emulated_gpu/warp.h"

namespace sluice::emulated_gpu {

// How large the card is: EMULATED_SMS, EMULATED_CAPABILITY (90) and EMULATED_VRAM_MIB.
struct CardSize {
  int n_sms = 8;
  int capability = 90;
  uint64_t vram_bytes = uint64_t{6} << 30;
};
const CardSize& card_size();

class Work {
 public:
  std::optional<LaunchOf> launch;       // a kernel, or
  std::function<void()> run;            // what the stream's thread does,
  std::function<bool()> is_ready = {};  // once this says so
};

struct Mark {  // of an event: done when the stream has come there
  std::atomic<bool> is_done{false};
};

class EmulatedStream {
 public:
  // What is captured is given to the stream anew by each launch of the graph.
  using Recorded = std::vector<std::function<void(EmulatedStream&)>>;

  EmulatedStream();
  ~EmulatedStream();
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;

  // Now, or when the graph that is being recorded is launched.
  void give(std::function<void(EmulatedStream&)> op);
  void add(Work work);
  void finish();
  bool is_idle();

  std::unique_ptr<Recorded> recording;

 private:
  void serve();
  bool take_next(bool may_take_any);
  bool turn();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  uint64_t n_given_ = 0, n_done_ = 0;
  int n_waiting_ = 0;  // threads, in finish()
  bool ends_ = false;
  std::deque<std::unique_ptr<Grid>> grids_;  // the oldest first
  std::optional<Work> work_;
  std::thread thread_;
};

// The first fault of a kernel: from then on nothing runs any more.
void keep_card_fault(const std::string& what);
bool has_card_fault();
std::string take_card_fault();  // and go on

}  // namespace sluice::emulated_gpu
