// See kv_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/kv_cache.h"

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kAlignment = 64;

void require_fitting_head(quant::Type type, const model::Config& config) {
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
  require_fitting_head(options.k_type, config);
  require_fitting_head(options.v_type, config);

  const int n_layers = options.n_layers < 0 ? config.n_layers : options.n_layers;
  const int64_t n_pages = table_stride_ * options.n_sequences;
  table_.assign(static_cast<size_t>(n_pages), -1);
  free_.resize(static_cast<size_t>(n_pages));
  for (size_t i = 0; i < free_.size(); ++i) free_[i] = static_cast<int32_t>(free_.size() - 1 - i);

  const uint64_t n_rows = static_cast<uint64_t>(n_pages) *
                          static_cast<uint64_t>(options.page_tokens) *
                          static_cast<uint64_t>(config.n_kv_heads);
  const uint64_t k_bytes =
      round_up(n_rows * quant::row_bytes(options.k_type, config.head_dim), kAlignment);
  const uint64_t v_bytes =
      round_up(n_rows * quant::row_bytes(options.v_type, config.head_dim), kAlignment);
  buffer_ = memory((k_bytes + v_bytes) * static_cast<uint64_t>(n_layers));
  std::byte* next = buffer_.data();
  for (int i = 0; i < n_layers; ++i) {
    layers_.push_back({options.k_type, options.v_type, next, next + k_bytes, options.page_tokens});
    next += k_bytes + v_bytes;
  }
}

std::span<int32_t> KvCache::pages_of(SequenceId sequence) {
  CHECK(sequence.value >= 0 && sequence.value < options_.n_sequences);
  return std::span(table_).subspan(static_cast<size_t>(sequence.value * table_stride_),
                                   static_cast<size_t>(table_stride_));
}

void KvCache::reserve(SequenceId sequence, int n_positions) {
  CHECK(n_positions <= options_.n_ctx);
  const auto pages = pages_of(sequence);
  for (size_t i = 0; static_cast<int64_t>(i) * options_.page_tokens < n_positions; ++i) {
    if (pages[i] >= 0) continue;
    CHECK(!free_.empty());  // there are as many pages as all sequences together can hold
    pages[i] = free_.back();
    free_.pop_back();
  }
}

void KvCache::truncate(SequenceId sequence, int n_positions) {
  CHECK(n_positions >= 0);
  const auto pages = pages_of(sequence);
  for (size_t i = 0; i < pages.size(); ++i) {
    if (static_cast<int64_t>(i) * options_.page_tokens < n_positions || pages[i] < 0) continue;
    free_.push_back(pages[i]);
    pages[i] = -1;
  }
}

}  // namespace sluice::engine
