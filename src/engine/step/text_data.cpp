// See text_data.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/text_data.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace sluice::engine {
namespace {

constexpr size_t kPagesTogether = 64;  // that one wait for the device serves

// The keys or the values of one layer.
struct Side {
  KvCache& cache;
  const backend::KvPage& page;
  std::byte* data;
  bool is_device;

  size_t page_bytes() const { return static_cast<size_t>(page.page_bytes()); }
  std::byte* place(SequenceId sequence, size_t index) const {
    return data + cache.page_of(sequence, index) * page.page_bytes();
  }
};

// Of so many positions of a page, without what the page has room for beyond them.
size_t packed_bytes(const backend::KvPage& page, int n_rows) {
  return static_cast<size_t>(page.n_kv_heads * n_rows * (page.row_bytes + page.scale_bytes));
}

// Calls with the place in a page and in the packed bytes of each part, and its size.
template <typename Call>
void each_part(const backend::KvPage& page, int n_rows, const Call& call) {
  size_t at = 0;
  const auto part = [&](int64_t in_page, int64_t n_bytes) {
    if (n_bytes > 0) call(static_cast<size_t>(in_page), at, static_cast<size_t>(n_bytes));
    at += static_cast<size_t>(n_bytes);
  };
  for (int head = 0; head < page.n_kv_heads; ++head) {
    part(page.row_at(0, head, 0), n_rows * page.row_bytes);
    part(page.scales_of(0, head, 0), n_rows * page.scale_bytes);
  }
}

// Calls with each run of pages that are moved together: the first, how many, and a function that
// says how many positions of a page are the text's.
template <typename Call>
void each_run(const backend::KvPage& page, int n_tokens, const Call& call) {
  const auto n_pages = static_cast<size_t>((n_tokens + page.page_tokens - 1) / page.page_tokens);
  const auto n_rows = [&](size_t index) {
    return std::min(page.page_tokens, n_tokens - static_cast<int>(index) * page.page_tokens);
  };
  for (size_t first = 0; first < n_pages; first += kPagesTogether) {
    call(first, std::min(kPagesTogether, n_pages - first), n_rows);
  }
}

// Calls with the keys, then with the values of a layer that attends.
template <typename Call>
void each_side(const TextMemory& memory, int layer, const Call& call) {
  const bool is_device = memory.copies.is_device(layer);
  for (KvCache* cache : memory.caches) {
    const int at = layer - cache->options().first_layer;
    if (at < 0 || at >= std::ssize(cache->layers())) continue;
    const backend::KvLayerView& view = cache->layers()[static_cast<size_t>(at)];
    if (!view.k) return;
    call(Side{*cache, cache->k_page(), view.k, is_device});
    call(Side{*cache, cache->v_page(), view.v, is_device});
    return;
  }
}

class TextReader {
 public:
  TextReader(const TextMemory& memory, SequenceId sequence, const TakeBytes& take)
      : copies_(memory.copies), sequence_(sequence), take_(take) {}

  void read(const Side& side, int n_tokens) {
    each_run(side.page, n_tokens, [&](size_t first, size_t n, const auto& n_rows) {
      pages_.resize(n * side.page_bytes());
      for (size_t i = 0; i < n; ++i) {
        copies_.copy(side.is_device, pages_.data() + i * side.page_bytes(),
                     side.place(sequence_, first + i), side.page_bytes());
      }
      copies_.finish(side.is_device);
      for (size_t i = 0; i < n; ++i) {
        packed_.resize(packed_bytes(side.page, n_rows(first + i)));
        each_part(side.page, n_rows(first + i), [&](size_t in_page, size_t at, size_t n_bytes) {
          std::memcpy(&packed_[at], &pages_[i * side.page_bytes() + in_page], n_bytes);
        });
        take_(packed_);
      }
    });
  }
  void read(std::span<const std::byte> state, bool is_device) {
    if (state.empty()) return;
    packed_.resize(state.size());
    copies_.copy(is_device, packed_.data(), state.data(), state.size());
    copies_.finish(is_device);
    take_(packed_);
  }

 private:
  const MemoryCopies& copies_;
  SequenceId sequence_;
  const TakeBytes& take_;
  std::vector<std::byte> pages_, packed_;
};

class TextWriter {
 public:
  TextWriter(const TextMemory& memory, SequenceId sequence, const FillBytes& fill)
      : copies_(memory.copies), sequence_(sequence), fill_(fill) {}

  void write(const Side& side, int n_tokens) {
    each_run(side.page, n_tokens, [&](size_t first, size_t n, const auto& n_rows) {
      pages_.assign(n * side.page_bytes(), std::byte{0});
      for (size_t i = 0; i < n; ++i) {
        packed_.resize(packed_bytes(side.page, n_rows(first + i)));
        fill_(packed_);
        each_part(side.page, n_rows(first + i), [&](size_t in_page, size_t at, size_t n_bytes) {
          std::memcpy(&pages_[i * side.page_bytes() + in_page], &packed_[at], n_bytes);
        });
        copies_.copy(side.is_device, side.place(sequence_, first + i),
                     pages_.data() + i * side.page_bytes(), side.page_bytes());
      }
      copies_.finish(side.is_device);
    });
  }
  void write(std::span<std::byte> state, bool is_device) {
    if (state.empty()) return;
    packed_.resize(state.size());
    fill_(packed_);
    copies_.copy(is_device, state.data(), packed_.data(), state.size());
    copies_.finish(is_device);
  }

 private:
  const MemoryCopies& copies_;
  SequenceId sequence_;
  const FillBytes& fill_;
  std::vector<std::byte> pages_, packed_;
};

}  // namespace

uint64_t text_data_bytes(const TextMemory& memory, int n_tokens) {
  uint64_t sum = 0;
  for (int layer = 0; layer < memory.n_layers; ++layer) {
    sum += memory.states.state_bytes(layer);
    each_side(memory, layer, [&](const Side& side) { sum += packed_bytes(side.page, n_tokens); });
  }
  return sum;
}

void read_text_data(const TextMemory& memory, SequenceId sequence, const TakeBytes& take) {
  const int n_tokens = memory.rows.n_tokens(sequence);
  CHECK(n_tokens > 0);
  memory.make_page_copies();
  TextReader reader(memory, sequence, take);
  for (int layer = 0; layer < memory.n_layers; ++layer) {
    each_side(memory, layer, [&](const Side& side) { reader.read(side, n_tokens); });
    reader.read(memory.states.newest(sequence, layer), memory.copies.is_device(layer));
  }
}

void write_text_data(const TextMemory& memory, SequenceId sequence, std::span<const TokenId> tokens,
                     const FillBytes& fill) {
  const auto n_tokens = static_cast<int>(tokens.size());
  CHECK(n_tokens > 0);
  memory.truncate(sequence, 0);
  try {
    memory.rows.replace(sequence, tokens, memory.caches);
    memory.states.replace(sequence, n_tokens);
    memory.make_page_copies();  // of a failed step: not over what is written now
    TextWriter writer(memory, sequence, fill);
    for (int layer = 0; layer < memory.n_layers; ++layer) {
      each_side(memory, layer, [&](const Side& side) { writer.write(side, n_tokens); });
      writer.write(memory.states.newest(sequence, layer), memory.copies.is_device(layer));
    }
  } catch (...) {
    memory.truncate(sequence, 0);
    throw;
  }
}

}  // namespace sluice::engine
