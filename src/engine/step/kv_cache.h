// The KV cache of all layers that attend: a pool of pages, and for each sequence the table of those
// it holds. A page id means the same page in every layer, so one table serves them all. Forked
// sequences share pages; one that writes to a shared page gets a copy first, which the cache's
// owner makes: the memory may be a device's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/kv_page.h"
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
  int first_layer = 0;  // that it serves
  int n_layers = -1;    // from there on; -1: all of the model
  int n_pages = 0;      // of the pool; 0: as many as all sequences together can hold
};

// Positions [begin, end) of a sequence, which a step writes. What is before them is held.
struct KvWrite {
  SequenceId sequence;
  int begin = 0;
  int end = 0;
  bool is_decode = false;     // as StepRow
  bool ends_message = false;  // as its last row
};

// Copies n_bytes within the cache's memory, in the order of the calls and before any later step's
// work.
using CopyBytes = std::function<void(std::byte* to, const std::byte* from, uint64_t n_bytes)>;

struct KvPages {
  int n_pages = 0;
  int n_free = 0;
  int page_tokens = 0;

  int n_for(int64_t n_tokens) const {
    return static_cast<int>((n_tokens + page_tokens - 1) / page_tokens);
  }
};

class KvCache {
 public:
  // Throws Errc::bad_request for a type that does not fit the head size.
  KvCache(const backend::Allocate& memory, const model::Config& config, const KvOptions& options);

  // Gives these positions pages that no other sequence holds. Throws Errc::out_of_memory where the
  // pool has too few; then nothing has changed.
  void reserve(std::span<const KvWrite> writes);
  // Gives back the pages that lie wholly behind the first n_positions.
  void truncate(SequenceId sequence, int n_positions);
  // Sequence `to` gives back what it holds, and shares the first n_positions of `from`.
  void fork(SequenceId from, SequenceId to, int n_positions);

  // Has the copies made that reserve() asked for. Due before a step writes; where the step fails
  // first, the next one makes them.
  void make_copies(const CopyBytes& copy);

  const KvOptions& options() const { return options_; }
  std::span<const backend::KvLayerView> layers() const { return layers_; }
  // How keys and values stand in their pages, and which page has the sequence's positions from
  // index * page_tokens on.
  const backend::KvPage& k_page() const { return k_page_; }
  const backend::KvPage& v_page() const { return v_page_; }
  int32_t page_of(SequenceId sequence, size_t index) { return pages_of(sequence)[index]; }
  const int32_t* page_table() const { return table_.data(); }
  int64_t table_stride() const { return table_stride_; }
  KvPages pages() const { return {n_pages(), n_free_pages(), options_.page_tokens}; }
  int n_pages() const { return static_cast<int>(n_holders_.size()); }
  int n_free_pages() const { return static_cast<int>(free_.size()); }
  uint64_t n_bytes() const { return buffer_.n_bytes(); }

 private:
  void lay_out(const backend::Allocate& memory, const model::Config& config);

  struct PageCopy {
    int32_t from, to;
  };
  struct Change {  // of the table, by a reserve() that is under way
    int32_t* place;
    int32_t before;
  };

  std::span<int32_t> pages_of(SequenceId sequence);
  bool take_page(int32_t& place);
  void drop_page(int32_t& place);
  void undo(size_t n_copies_before);
  [[noreturn]] void refuse(const KvWrite& write, int64_t page) const;

  KvOptions options_;
  int64_t table_stride_;
  std::vector<int32_t> table_;  // [n_sequences, table_stride]; -1: no page
  std::vector<int32_t> free_;
  std::vector<int32_t> n_holders_;  // by page: sequences that have it in their table
  std::vector<PageCopy> copies_;    // in the order in which they must be made
  std::vector<Change> changes_;
  backend::KvPage k_page_{}, v_page_{};
  backend::Buffer buffer_;
  std::vector<backend::KvLayerView> layers_;
};

}  // namespace sluice::engine
