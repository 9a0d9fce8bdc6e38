// Brings weights into a device's memory at the start, as fast as the link is: all threads fill one
// of two pinned buffers while the other one is copied. Rows that kernels want woven
// (quant/stripes.h) are woven on the way, so that a file which is only mapped needs no copy in the
// host's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "backend/device.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::engine {

class Upload {
 public:
  using Progress = std::function<void(uint64_t bytes_done, uint64_t bytes_total)>;
  enum class From { memory, file };  // that is mapped, and may have shrunk meanwhile

  // About n_total bytes are to come; the last ones say that all are done. All outlive it. Where the
  // system grants no pinned memory, copies are as slow as from any other.
  Upload(backend::Device& device, ThreadPool& threads, uint64_t n_total, Progress progress);

  // All matrices, one behind the other, and their rows in order; woven where asked for, unless they
  // are already or cannot be. What is to be copied stays as it is until finish().
  void add(std::byte* to, const backend::WeightView& w, bool weaves);
  void add(std::byte* to, std::span<const std::byte> bytes, From from = From::memory);

  // Waits for all of it. Throws what went wrong: Errc::bad_file where a file could not be read.
  void finish();

  uint64_t n_bytes() const { return n_done_; }
  double seconds() const { return seconds_; }  // from the first to the last finish()

 private:
  // Of one source and one place; so small that threads share the work.
  struct Piece {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    uint64_t n_bytes = 0;
    uint64_t at = 0;            // in the buffer
    uint64_t stripe_bytes = 0;  // 0: as they are
    From source = From::memory;
    quant::Type type = quant::Type::f32;
    int64_t n_cols = 0;
  };
  struct Half {
    backend::Buffer memory;
    std::unique_ptr<backend::Stream> stream;
  };

  void add_pieces(Piece all, uint64_t unit_bytes);
  void flush();
  void fill(std::byte* buffer);
  void copy(const Half& half);

  ThreadPool& threads_;
  uint64_t n_total_;
  Progress progress_;
  std::array<Half, 2> halves_;
  size_t current_ = 0;
  uint64_t room_ = 0;  // of a buffer
  uint64_t n_taken_ = 0;
  std::vector<Piece> pieces_;  // of the current buffer
  uint64_t n_done_ = 0;
  double start_, seconds_ = 0.0;
};

}  // namespace sluice::engine
