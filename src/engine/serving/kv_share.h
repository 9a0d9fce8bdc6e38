// How many tokens the KV pages of an engine hold, and how many texts it keeps in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "policy/plan/pricing.h"
#include "sluice/engine.h"

namespace sluice::engine {

struct KvShare {
  int n_tokens = 0;  // whole pages
  int n_kept = 0;    // texts besides those that run

  // Half of it; false where that is less than one context.
  bool halve(int n_ctx);
};

// Throws Errc::bad_request where the wishes make no sense, or hold less than one context. Where
// nobody asked for a size, it takes at most half of the memory that is free.
KvShare share_kv(const policy::ModelShape& shape, const EngineOptions& options, int n_ctx,
                 uint64_t free_bytes);

}  // namespace sluice::engine
