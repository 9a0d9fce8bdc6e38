// See token_trie.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/token_trie.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::text {
namespace {

constexpr size_t kMostBytes = (1 << 24) - 1;  // what Node::depth holds

size_t tier_of(size_t n_bytes) {
  size_t tier = 0;
  while (tier < TokenTrie::kTierBytes.size() && n_bytes > TokenTrie::kTierBytes[tier]) ++tier;
  return tier;
}

}  // namespace

TokenTrie::TokenTrie(std::vector<std::string> token_bytes) : token_bytes_(std::move(token_bytes)) {
  std::array<std::vector<TokenId>, kTiers> tiers;
  for (size_t id = 0; id < token_bytes_.size(); ++id) {
    const size_t n_bytes = token_bytes_[id].size();
    if (n_bytes > kMostBytes) {
      throw Error(Errc::bad_file, cat("token ", id, " has ", n_bytes, " bytes, expected at most ",
                                      kMostBytes, "; the vocabulary is damaged"));
    }
    max_depth_ = std::max(max_depth_, static_cast<uint32_t>(n_bytes));
    if (n_bytes > 0) tiers[tier_of(n_bytes)].push_back(static_cast<TokenId>(id));
  }
  for (size_t tier = 0; tier < kTiers; ++tier) {
    std::ranges::sort(tiers[tier], {}, [this](TokenId id) { return bytes(id); });
    roots_[tier] = static_cast<uint32_t>(nodes_.size());
    add_tree(tiers[tier]);
  }
  nodes_.push_back({.first_token = static_cast<uint32_t>(tokens_.size())});
}

void TokenTrie::add_tree(std::span<const TokenId> sorted) {
  std::vector<uint32_t> path;  // the nodes of the current token, the root first
  const auto push = [&](uint32_t depth, uint8_t byte) {
    path.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), depth, byte});
  };
  const auto close_to = [&](size_t length) {
    while (path.size() > length) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  push(0, 0);
  std::string_view before;
  for (const TokenId id : sorted) {
    const std::string_view now = bytes(id);
    const auto common = std::ranges::mismatch(before, now).in2 - now.begin();
    close_to(static_cast<size_t>(common) + 1);
    for (size_t i = static_cast<size_t>(common); i < now.size(); ++i) {
      push(static_cast<uint32_t>(i) + 1, static_cast<uint8_t>(now[i]));
    }
    tokens_.push_back(id);
    before = now;
  }
  close_to(0);
}

}  // namespace sluice::text
