// The KV cache of all layers: a pool of pages, and for each sequence the table of those it holds. A
// page id means the same page in every layer, so one table serves them all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "base/ids.h"
#include "model/config.h"

namespace sluice::engine {

struct KvOptions {
  quant::Type k_type = quant::Type::f16;
  quant::Type v_type = quant::Type::f16;
  int n_sequences = 1;
  int n_ctx = 0;  // positions each sequence can hold
  int page_tokens = 64;
  int n_layers = -1;  // that it serves; -1: all of the model
};

class KvCache {
 public:
  // Throws Errc::bad_request for a type that does not fit the head size.
  KvCache(const backend::Allocate& memory, const model::Config& config, const KvOptions& options);

  // Makes sure that positions [0, n_positions) of the sequence have pages.
  void reserve(SequenceId sequence, int n_positions);
  // Gives back the pages that lie wholly behind the first n_positions.
  void truncate(SequenceId sequence, int n_positions);

  std::span<const backend::KvLayerView> layers() const { return layers_; }
  const int32_t* page_table() const { return table_.data(); }
  int64_t table_stride() const { return table_stride_; }
  int n_free_pages() const { return static_cast<int>(free_.size()); }
  uint64_t n_bytes() const { return buffer_.n_bytes(); }

 private:
  std::span<int32_t> pages_of(SequenceId sequence);

  KvOptions options_;
  int64_t table_stride_;
  std::vector<int32_t> table_;  // [n_sequences, table_stride]; -1: no page
  std::vector<int32_t> free_;
  backend::Buffer buffer_;
  std::vector<backend::KvLayerView> layers_;
};

}  // namespace sluice::engine
