// See upload.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/upload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>

#include "backend/cpu/host_memory.h"
#include "base/error.h"
#include "base/units.h"
#include "base/wall_clock.h"
#include "engine/woven_weights.h"
#include "gguf/mapped_file.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kBufferBytes = 64 * kMiB;
constexpr uint64_t kLeastBytes = kMiB;
constexpr uint64_t kPieceBytes = 256 * kKiB;

// Pinned, or half as much, or a quarter; or memory that is not.
backend::Buffer buffer_of(backend::Device& device, uint64_t n_bytes) {
  for (uint64_t n = n_bytes; n >= std::min(n_bytes, kLeastBytes); n /= 2) {
    try {
      return device.allocate(backend::MemoryKind::pinned, n);
    } catch (const Error& e) {
      if (e.code() != Errc::out_of_memory) throw;
    }
  }
  return backend::allocate_host(std::min(n_bytes, kLeastBytes));
}

}  // namespace

Upload::Upload(backend::Device& device, ThreadPool& threads, uint64_t n_total, Progress progress)
    : threads_(threads), n_total_(n_total), progress_(std::move(progress)), start_(wall_seconds()) {
  const uint64_t n_bytes =
      std::clamp(round_up(n_total / 2, kPieceBytes), kPieceBytes, kBufferBytes);
  for (Half& half : halves_) {
    half.memory = buffer_of(device, n_bytes);
    half.stream = device.make_stream("upload");
  }
  room_ = std::min(halves_[0].memory.n_bytes(), halves_[1].memory.n_bytes());
}

void Upload::add(std::byte* to, const backend::WeightView& w, bool weaves) {
  const bool is_woven = w.layout == quant::Layout::stripes;
  const bool is_to_weave = weaves && !is_woven && can_be_woven(w);
  Piece all{.stripe_bytes = is_to_weave ? quant::kStripeRows * w.row_bytes() : 0,
            .source = is_woven ? From::memory : From::file,
            .type = w.type,
            .n_cols = w.n_cols};
  w.each_run([&](const backend::RowRun& run) {
    all.to = to + static_cast<uint64_t>(run.first) * w.row_bytes();
    all.from = w.row(run.at);
    all.n_bytes = static_cast<uint64_t>(w.n_mats * run.n_rows) * w.row_bytes();
    add_pieces(all, std::max<uint64_t>(all.stripe_bytes, 1));
  });
}

void Upload::add(std::byte* to, std::span<const std::byte> bytes, From from) {
  add_pieces({.to = to, .from = bytes.data(), .n_bytes = bytes.size(), .source = from}, 1);
}

// Cut between units. A stripe of a very wide matrix may be larger than a piece.
void Upload::add_pieces(Piece all, uint64_t unit_bytes) {
  const uint64_t most = std::max(kPieceBytes / unit_bytes, uint64_t{1}) * unit_bytes;
  if (most > room_)
    throw Error(Errc::out_of_memory,
                cat("a stripe of ", format_bytes(most),
                    " is larger than the buffer through which it comes, ", format_bytes(room_)));
  for (uint64_t at = 0; at < all.n_bytes;) {
    if (n_taken_ + std::min(most, all.n_bytes - at) > room_) flush();
    Piece piece = all;
    piece.to += at;
    piece.from += at;
    piece.at = n_taken_;
    piece.n_bytes = std::min(most, all.n_bytes - at);
    n_taken_ += piece.n_bytes;
    at += piece.n_bytes;
    pieces_.push_back(piece);
  }
}

void Upload::flush() {
  Half& half = halves_[current_];
  half.stream->finish();  // what was in it before has left
  fill(half.memory.data());
  copy(half);
  n_done_ += n_taken_;
  if (progress_ && n_taken_ > 0) progress_(std::min(n_done_, n_total_), n_total_);
  pieces_.clear();
  n_taken_ = 0;
  current_ = 1 - current_;
}

void Upload::fill(std::byte* buffer) {
  std::atomic<int> error = 0;
  threads_.parallel_for(std::ssize(pieces_), 1, [&](int64_t begin, int64_t end, int) {
    for (const Piece& p : std::span(pieces_).subspan(begin, end - begin)) {
      if (p.source == From::file) {
        if (const int failed = gguf::read_pages({p.from, p.n_bytes})) {
          error = failed;
          return;
        }
      }
      if (p.stripe_bytes == 0) std::memcpy(buffer + p.at, p.from, p.n_bytes);
      for (uint64_t i = 0; p.stripe_bytes > 0 && i < p.n_bytes; i += p.stripe_bytes) {
        quant::weave_rows(p.type, p.n_cols, p.from + i, buffer + p.at + i);
      }
    }
  });
  if (error == 0) return;
  throw Error(Errc::bad_file,
              cat("the model's weights cannot be read (", std::generic_category().message(error),
                  "); expected a whole file on a sound disk"));
}

// Pieces whose places follow each other are one copy.
void Upload::copy(const Half& half) {
  for (size_t i = 0; i < pieces_.size();) {
    const Piece& first = pieces_[i];
    uint64_t n_bytes = 0;
    for (; i < pieces_.size() && pieces_[i].to == first.to + n_bytes; ++i)
      n_bytes += pieces_[i].n_bytes;
    half.stream->copy(first.to, half.memory.data() + first.at, n_bytes);
  }
}

void Upload::finish() {
  flush();
  for (const Half& half : halves_) half.stream->finish();
  seconds_ = wall_seconds() - start_;
}

}  // namespace sluice::engine
