// See kv_share.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/serving/kv_share.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/units.h"

namespace sluice::engine {
namespace {

constexpr int kPage = policy::kKvPageTokens;
constexpr int kMostSequences = 256;

// Texts kept for each that runs. A table of pages costs little, a recurrent state does not.
constexpr int kKeptEach = 2;
constexpr int kKeptWithStates = 2;

int64_t pages_for(int64_t n_tokens) { return (n_tokens + kPage - 1) / kPage; }

uint64_t page_bytes(const policy::ModelShape& shape, const SessionOptions& options) {
  const policy::Workload page{.n_ctx = kPage,
                              .k_type = static_cast<policy::KvType>(options.k_type),
                              .v_type = static_cast<policy::KvType>(options.v_type)};
  uint64_t sum = 0;
  for (const policy::LayerShape& layer : shape.layers) sum += policy::kv_bytes(layer, page);
  return std::max<uint64_t>(sum, 1);
}

}  // namespace

bool KvShare::halve(int n_ctx) {
  const int64_t least = pages_for(n_ctx) * kPage;
  if (n_tokens <= least) return false;
  n_tokens = static_cast<int>(std::max(least, pages_for(n_tokens / 2) * kPage));
  return true;
}

KvShare share_kv(const policy::ModelShape& shape, const EngineOptions& options, int n_ctx,
                 uint64_t free_bytes) {
  if (options.n_sequences < 1 || options.n_sequences > kMostSequences || options.n_queued < 0) {
    throw Error(Errc::bad_request,
                cat(options.n_sequences, " texts at a time and ", options.n_queued,
                    " that wait; expected 1 to ", kMostSequences, ", and 0 or more"));
  }
  const bool has_states = std::ranges::any_of(
      shape.layers, [](const policy::LayerShape& layer) { return layer.state_bytes > 0; });
  const uint64_t bytes = page_bytes(shape, options.session);
  const int64_t context = pages_for(n_ctx);
  int64_t n_pages = context * options.n_sequences;
  if (options.kv_bytes > 0) {
    n_pages = std::min<int64_t>(n_pages * (1 + kKeptEach),
                                static_cast<int64_t>(options.kv_bytes / bytes));
    if (n_pages < context) {
      throw Error(Errc::bad_request,
                  cat("a KV cache of ", options.kv_bytes, " bytes holds ", n_pages * kPage,
                      " tokens, less than one context of ", n_ctx, "; it needs at least ",
                      static_cast<uint64_t>(context) * bytes, " bytes"));
    }
  } else if (options.session.device.kind == DeviceKind::cpu) {
    const auto most = static_cast<int64_t>(free_bytes / 2 / bytes);
    n_pages = std::clamp(n_pages, context, std::max(context, most));
  }
  constexpr int64_t kMostPages = std::numeric_limits<int>::max() / kPage;
  return {.n_tokens = static_cast<int>(std::min(n_pages, kMostPages)) * kPage,
          .n_kept = has_states ? kKeptWithStates : kKeptEach * options.n_sequences};
}

}  // namespace sluice::engine
