// See kv_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/kv_cache.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kAlignment = 64;

void require_fitting_head(quant::Type type, const model::Config& config) {
  CHECK(quant::is_float(type) || type == quant::Type::q8_0 || type == quant::Type::q4_0);
  const quant::TypeInfo& info = quant::type_info(type);
  if (config.head_dim % static_cast<int>(info.block_elems) == 0) return;
  throw Error(Errc::bad_request,
              cat("a KV cache of ", info.name, " needs heads of a multiple of ", info.block_elems,
                  " values; this model's have ", config.head_dim, "; use f16"));
}

}  // namespace

KvCache::KvCache(const backend::Allocate& memory, const model::Config& config,
                 const KvOptions& options)
    : options_(options),
      table_stride_((int64_t{options.n_ctx} + options.page_tokens - 1) / options.page_tokens) {
  CHECK(options.n_ctx > 0 && options.n_sequences > 0 && options.page_tokens > 0);
  CHECK(options.n_pages >= 0);
  require_fitting_head(options.k_type, config);
  require_fitting_head(options.v_type, config);

  const int64_t most = table_stride_ * options.n_sequences;
  const int64_t n_pages = options.n_pages > 0 ? options.n_pages : most;
  table_.assign(static_cast<size_t>(most), -1);
  n_holders_.assign(static_cast<size_t>(n_pages), 0);
  free_.resize(static_cast<size_t>(n_pages));
  for (size_t i = 0; i < free_.size(); ++i) free_[i] = static_cast<int32_t>(free_.size() - 1 - i);
  changes_.reserve(table_.size());
  copies_.reserve(table_.size());
  lay_out(memory, config);
}

void KvCache::lay_out(const backend::Allocate& memory, const model::Config& config) {
  const auto page = [&](quant::Type type) {
    return backend::kv_page(type, config.n_kv_heads, config.head_dim, options_.page_tokens);
  };
  k_page_ = page(options_.k_type);
  v_page_ = page(options_.v_type);
  const auto pool_bytes = [&](const backend::KvPage& of) {
    return round_up(n_holders_.size() * static_cast<uint64_t>(of.page_bytes()), kAlignment);
  };
  const uint64_t k_bytes = pool_bytes(k_page_), v_bytes = pool_bytes(v_page_);
  const int first = options_.first_layer;
  const int last = options_.n_layers < 0 ? config.n_layers : first + options_.n_layers;
  const auto attends = [&](int i) { return config.memory[static_cast<size_t>(i)].n_kv_heads > 0; };
  uint64_t n_attending = 0;
  for (int i = first; i < last; ++i) n_attending += attends(i) ? 1 : 0;
  buffer_ = memory((k_bytes + v_bytes) * n_attending);
  std::byte* next = buffer_.data();
  for (int i = first; i < last; ++i) {
    if (!attends(i)) {
      layers_.push_back({});
      continue;
    }
    layers_.push_back(
        {options_.k_type, options_.v_type, next, next + k_bytes, options_.page_tokens});
    next += k_bytes + v_bytes;
  }
}

std::span<int32_t> KvCache::pages_of(SequenceId sequence) {
  CHECK(sequence.value >= 0 && sequence.value < options_.n_sequences);
  return std::span(table_).subspan(static_cast<size_t>(sequence.value * table_stride_),
                                   static_cast<size_t>(table_stride_));
}

// Puts a page of its own in place of none, or of one that is shared. False where none is free.
bool KvCache::take_page(int32_t& place) {
  const int32_t before = place;
  const bool is_shared = before >= 0 && n_holders_[static_cast<size_t>(before)] > 1;
  if (before >= 0 && !is_shared) return true;
  if (free_.empty()) return false;
  changes_.push_back({&place, before});
  place = free_.back();
  free_.pop_back();
  n_holders_[static_cast<size_t>(place)] = 1;
  if (is_shared) {
    --n_holders_[static_cast<size_t>(before)];
    copies_.push_back({before, place});
  }
  return true;
}

void KvCache::drop_page(int32_t& place) {
  if (--n_holders_[static_cast<size_t>(place)] == 0) free_.push_back(place);
  place = -1;
}

// Of the reserve() under way, the last change first. None of its copies was made yet.
void KvCache::undo(size_t n_copies_before) {
  copies_.resize(n_copies_before);
  for (; !changes_.empty(); changes_.pop_back()) {
    const auto& [place, before] = changes_.back();
    drop_page(*place);
    *place = before;
    if (before >= 0) ++n_holders_[static_cast<size_t>(before)];
  }
}

void KvCache::refuse(const KvWrite& write, int64_t page) const {
  const int64_t first = page * options_.page_tokens;
  const auto n_sharing = std::ranges::count_if(n_holders_, [](int32_t n) { return n > 1; });
  throw Error(
      Errc::out_of_memory,
      cat("the KV cache is full: sequence ", write.sequence.value,
          " needs a page for its positions ", first, " to ", first + options_.page_tokens - 1,
          ", and all ", n_pages(), " pages are in use (", n_sharing,
          " of them shared); end or shorten a sequence, or give the cache more "
          "pages"));
}

void KvCache::reserve(std::span<const KvWrite> writes) {
  const size_t n_copies_before = copies_.size();
  changes_.clear();
  for (const KvWrite& write : writes) {
    CHECK(write.begin >= 0 && write.end <= options_.n_ctx);
    const auto pages = pages_of(write.sequence);
    for (int64_t i = write.begin / options_.page_tokens; i * options_.page_tokens < write.end;
         ++i) {
      CHECK(i == 0 || pages[static_cast<size_t>(i - 1)] >= 0);
      if (take_page(pages[static_cast<size_t>(i)])) continue;
      undo(n_copies_before);
      refuse(write, i);
    }
  }
}

void KvCache::truncate(SequenceId sequence, int n_positions) {
  CHECK(n_positions >= 0);
  const auto pages = pages_of(sequence);
  for (size_t i = 0; i < pages.size(); ++i) {
    if (static_cast<int64_t>(i) * options_.page_tokens < n_positions || pages[i] < 0) continue;
    drop_page(pages[i]);
  }
}

void KvCache::fork(SequenceId from, SequenceId to, int n_positions) {
  CHECK(from.value != to.value && n_positions >= 0);
  const auto shared = pages_of(from), pages = pages_of(to);
  truncate(to, 0);
  for (size_t i = 0; static_cast<int64_t>(i) * options_.page_tokens < n_positions; ++i) {
    CHECK(i < shared.size() && shared[i] >= 0);
    pages[i] = shared[i];
    ++n_holders_[static_cast<size_t>(pages[i])];
  }
}

void KvCache::make_copies(const CopyBytes& copy) {
  for (; !copies_.empty(); copies_.erase(copies_.begin())) {
    const auto& [from, to] = copies_.front();
    for (const backend::KvLayerView& layer : layers_) {
      if (!layer.k) continue;
      // Named, since clang 14 captures no structured bindings.
      const auto copy_page = [&, from = from, to = to](std::byte* data,
                                                       const backend::KvPage& page) {
        copy(data + to * page.page_bytes(), data + from * page.page_bytes(),
             static_cast<uint64_t>(page.page_bytes()));
      };
      copy_page(layer.k, k_page_);
      copy_page(layer.v, v_page_);
    }
  }
}

}  // namespace sluice::engine
