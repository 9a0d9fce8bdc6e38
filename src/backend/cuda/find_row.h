// Where the experts of a single row are, by rank, in a kernel as in g++ (lanes.h): in the table, in
// the host's memory, or with the CPU. Every block that asks finds the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"
#include "base/miss_split.h"

namespace sluice::backend::cuda {

// What a lookup knows besides the table.
struct RowPlaces {
  const uint8_t* host = nullptr;  // the layer's slots; null: the device cannot read them
  int64_t stride = 0;             // from one to the next
  float link_share = 0.0f;        // base/miss_split.h
  int n_landed = 0;               // places that earlier layers of the step have taken,
  int n_places = 0;               // of so many
};

// Lane k: of rank k.
struct RowFound {
  PerLane<const uint8_t*> at;  // null: the CPU computes it
  PerLane<int> landing;        // the place where a copy is left; -1: none is
  uint32_t link = 0, cpu = 0;  // ranks, bit by bit
};

SLUICE_LANE_FN RowFound find_row(const RowPlaces& where, const PerLane<const uint8_t*>& table,
                                 const PerLane<int>& experts, int n_used) {
  RowFound out;
  PerLane<bool> is_missing;
  EACH_LANE(lane) {
    out.at[lane] = table[lane], out.landing[lane] = -1;
    is_missing[lane] = lane < n_used && table[lane] == nullptr;
  }
  const uint32_t missing = lanes_that(is_missing);
  if (missing == 0) return out;
  const int n_link = where.host ? link_reads(count_bits(missing), where.link_share) : 0;
  PerLane<bool> is_link;
  EACH_LANE(lane) {
    const int before = count_bits(missing & ((1u << lane) - 1));
    is_link[lane] = is_missing[lane] && before < n_link;
    if (is_link[lane]) {
      out.at[lane] = where.host + experts[lane] * where.stride;
      if (where.n_landed + before < where.n_places) out.landing[lane] = where.n_landed + before;
    }
  }
  out.link = lanes_that(is_link);
  out.cpu = missing & ~out.link;
  return out;
}

}  // namespace sluice::backend::cuda
