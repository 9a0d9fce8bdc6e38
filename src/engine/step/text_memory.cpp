// See text_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/text_memory.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/step_memory.h"

namespace sluice::engine {
namespace {

std::vector<TokenId> between(std::span<const TokenId> text, int begin, int end) {
  return {text.begin() + begin, text.begin() + end};
}

}  // namespace

std::vector<TokenId> TextMemory::truncate(SequenceId sequence, int n_tokens) const {
  CHECK(n_tokens >= 0 && n_tokens <= rows.n_tokens(sequence));
  const int reached = states.go_back(sequence, n_tokens, replay);
  std::vector<TokenId> again = between(rows.text(sequence), reached, n_tokens);
  rows.truncate(sequence, reached, caches);
  return again;
}

std::vector<TokenId> TextMemory::fork(SequenceId from, SequenceId to, int n_tokens) const {
  CHECK(n_tokens >= 0 && n_tokens <= rows.n_tokens(from) && from != to);
  const int reached = states.fork(from, to, n_tokens, replay);
  rows.fork(from, to, reached, caches);
  return between(rows.text(from), reached, n_tokens);
}

// A cache is the host's, or all of it is the device's.
void TextMemory::make_page_copies() const {
  for (KvCache* cache : caches) {
    const bool is_device = copies.is_device(cache->options().first_layer);
    cache->make_copies([&](std::byte* to, const std::byte* from, uint64_t n_bytes) {
      copies.copy(is_device, to, from, n_bytes);
    });
  }
}

// A driver whose texts stay with it.
TextMemory StepDriver::text_memory() {
  throw Error(Errc::bad_request, "what this driver has computed cannot be written out");
}

int64_t compute_again(StepDriver& driver, SequenceId sequence, std::span<const TokenId> tokens) {
  const auto most = static_cast<size_t>(std::min(kNarrowRows, driver.max_rows()));
  const int64_t n = std::ssize(tokens);
  std::vector<StepRow> rows;
  for (; !tokens.empty(); tokens = tokens.subspan(rows.size())) {
    rows.clear();
    for (const TokenId token : tokens.first(std::min(most, tokens.size()))) {
      rows.push_back({token, sequence});
    }
    driver.step(rows, policy::Phase::decode, {});
  }
  return n;
}

}  // namespace sluice::engine
