// See woven_weights.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/woven_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>

#include "backend/cpu/host_memory.h"
#include "base/error.h"
#include "base/units.h"
#include "gguf/mapped_file.h"

namespace sluice::engine {
namespace {

using backend::ExpertsView;
using backend::WeightView;

constexpr uint64_t kCacheLine = 64;
// A layer's experts begin on a page of their own: memory is registered for a device page by page.
constexpr uint64_t kPage = 4 * kKiB;

std::vector<WeightView*> matrices_to_weave(model::Model& model) {
  std::vector<WeightView*> matrices = model.matrices();
  std::erase_if(matrices, [](const WeightView* w) { return !can_be_woven(*w); });
  return matrices;
}

uint64_t bytes_of(const WeightView& w) {
  return static_cast<uint64_t>(w.n_mats) * w.matrix_bytes();
}

uint64_t slots_bytes(const ExpertsView& experts) {
  return static_cast<uint64_t>(experts.gate.n_mats) * backend::ExpertLayout(experts).stride;
}

// Hands out memory from its beginning; says where.
struct Room {
  uint64_t take(uint64_t n_bytes, uint64_t alignment) {
    const uint64_t at = round_up(end, alignment);
    end = at + n_bytes;
    return at;
  }
  uint64_t end = 0;
};

// All matrices of a weight, to places `stride` bytes apart; woven where they can be. Piece by piece
// on all threads, each of which reads its piece from the disk if need be and lets go of the file's
// pages when it is done, so that no more of the model is in memory twice.
void copy_matrices(WeightView& w, ThreadPool& pool, std::byte* to, uint64_t stride) {
  constexpr uint64_t kPiece = 2 * kMiB;
  const WeightView from = w;
  const bool weaves = can_be_woven(from);
  const int64_t unit_rows = weaves ? quant::kStripeRows : 1;
  const uint64_t unit_bytes = static_cast<uint64_t>(unit_rows) * from.row_bytes();
  const auto grain = static_cast<int64_t>(std::max<uint64_t>(1, kPiece / unit_bytes));
  std::atomic<int> error = 0;
  from.each_run([&](const backend::RowRun& run) {
    const int64_t n_units = run.n_rows / unit_rows;  // of one matrix
    const auto unit_at = [&](int64_t i) {
      return from.row(i / n_units * from.matrix_rows_apart() + run.at + i % n_units * unit_rows);
    };
    std::byte* const run_to = to + static_cast<uint64_t>(run.first) * from.row_bytes();
    pool.parallel_for(n_units * from.n_mats, grain, [&](int64_t begin, int64_t end, int) {
      const std::span piece(unit_at(begin), unit_at(end - 1) + unit_bytes);
      if (const int failed = gguf::read_pages(piece)) {
        error = failed;
        return;
      }
      for (int64_t i = begin; i < end; ++i) {
        const std::byte* const rows = unit_at(i);
        std::byte* const place = run_to + static_cast<uint64_t>(i / n_units) * stride +
                                 static_cast<uint64_t>(i % n_units) * unit_bytes;
        if (weaves) {
          quant::weave_rows(from.type, from.n_cols, rows, place);
        } else {
          std::memcpy(place, rows, unit_bytes);
        }
      }
      gguf::forget_pages(piece);
    });
  });
  if (error != 0) {
    throw Error(Errc::bad_file,
                cat("the model's weights cannot be read (", std::generic_category().message(error),
                    "); expected a whole file on a sound disk"));
  }
  w.data = to;
  w.rows_apart = 0;
  w.groups = {};
  if (weaves) w.layout = quant::Layout::stripes;
}

}  // namespace

bool can_be_woven(const WeightView& w) {
  bool are_whole = !quant::is_float(w.type);
  w.each_run([&](const backend::RowRun& run) {
    are_whole = are_whole && run.n_rows % quant::kStripeRows == 0;
  });
  return are_whole;
}

uint64_t WovenWeights::bytes_for(model::Model& model) {
  Room room;
  for (const WeightView* w : matrices_to_weave(model)) room.take(bytes_of(*w), kCacheLine);
  for (const ExpertsView* e : model.experts()) room.take(slots_bytes(*e), kPage);
  return room.end;
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
  Room room;
  const auto report = [&](uint64_t done) {
    if (progress) progress(done, total);
  };
  for (WeightView* w : matrices_to_weave(model)) {
    const uint64_t n_bytes = bytes_of(*w);
    copy_matrices(*w, pool, memory_.data() + room.take(n_bytes, kCacheLine), n_bytes);
    report(room.end);
  }
  for (ExpertsView* e : model.experts()) {
    const backend::ExpertLayout layout(*e);
    const uint64_t at = room.take(slots_bytes(*e), kPage);
    std::byte* const slots = memory_.data() + at;
    copy_matrices(e->gate, pool, slots, layout.stride);
    report(at + bytes_of(e->gate));
    copy_matrices(e->up, pool, slots + layout.up_at, layout.stride);
    report(at + bytes_of(e->gate) + bytes_of(e->up));
    copy_matrices(e->down, pool, slots + layout.down_at, layout.stride);
    report(room.end);
    e->slots = slots;
  }
}

}  // namespace sluice::engine
