// See woven_weights.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/woven_weights.h"

#include <algorithm>
#include <atomic>
#include <system_error>

#include "backend/cpu/host_memory.h"
#include "base/error.h"
#include "base/units.h"
#include "gguf/mapped_file.h"

namespace sluice::engine {
namespace {

using backend::WeightView;

constexpr uint64_t kAlignment = 64;

bool can_be_woven(const WeightView& w) {
  return !quant::is_float(w.type) && w.n_rows % quant::kStripeRows == 0;
}

uint64_t bytes_of(const WeightView& w) {
  return static_cast<uint64_t>(w.n_rows * w.n_mats) * w.row_bytes();
}

uint64_t aligned(uint64_t n_bytes) { return (n_bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::vector<WeightView*> matrices_to_weave(model::Model& model) {
  std::vector<WeightView*> matrices = model.matrices();
  std::erase_if(matrices, [](const WeightView* w) { return !can_be_woven(*w); });
  return matrices;
}

// Piece by piece on all threads, each of which reads its piece from the disk if need be and lets go
// of the file's pages when it is done, so that no more of the model is in memory twice.
void weave(const WeightView& from, ThreadPool& pool, std::byte* to) {
  constexpr uint64_t kPiece = 2 * kMiB;
  const uint64_t stripe_bytes = quant::kStripeRows * from.row_bytes();
  const int64_t n_stripes = from.n_rows * from.n_mats / quant::kStripeRows;
  const auto grain = static_cast<int64_t>(std::max<uint64_t>(1, kPiece / stripe_bytes));
  std::atomic<int> error = 0;
  pool.parallel_for(n_stripes, grain, [&](int64_t begin, int64_t end, int) {
    const uint64_t first = static_cast<uint64_t>(begin) * stripe_bytes;
    const uint64_t last = static_cast<uint64_t>(end) * stripe_bytes;
    const std::span piece(from.data + first, last - first);
    if (const int failed = gguf::read_pages(piece)) {
      error = failed;
      return;
    }
    for (uint64_t at = first; at < last; at += stripe_bytes) {
      quant::weave_rows(from.type, from.n_cols, from.data + at, to + at);
    }
    gguf::forget_pages(piece);
  });
  if (error != 0) {
    throw Error(Errc::bad_file,
                cat("the model's weights cannot be read (", std::generic_category().message(error),
                    "); expected a whole file on a sound disk"));
  }
}

}  // namespace

uint64_t WovenWeights::bytes_for(model::Model& model) {
  uint64_t total = 0;
  for (const WeightView* w : matrices_to_weave(model)) total += aligned(bytes_of(*w));
  return total;
}

bool WovenWeights::leave_room(uint64_t n_bytes, uint64_t free_bytes) {
  const uint64_t spare = std::max(kGiB, free_bytes / 8);
  return spare < free_bytes && n_bytes <= free_bytes - spare;
}

WovenWeights::WovenWeights(model::Model& model, ThreadPool& pool, const Progress& progress) {
  const uint64_t total = bytes_for(model);
  try {
    memory_ = backend::allocate_host(total);
  } catch (const Error&) {
    throw Error(Errc::out_of_memory, cat("no room for a copy of the weights (", format_bytes(total),
                                         "); leave them in the file: --weights mapped"));
  }
  std::byte* next = memory_.data();
  for (WeightView* w : matrices_to_weave(model)) {
    weave(*w, pool, next);
    w->data = next;
    w->layout = quant::Layout::stripes;
    next += aligned(bytes_of(*w));
    if (progress) progress(static_cast<uint64_t>(next - memory_.data()), total);
  }
}

}  // namespace sluice::engine
