// The byte strings of a vocabulary as prefix trees, laid out for walking all of them: a node's
// subtree follows it. Built once for a tokenizer, then immutable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace sluice::text {

class TokenTrie {
 public:
  struct Node {
    uint32_t end = 0;          // behind the last node of its subtree
    uint32_t first_token = 0;  // into tokens(); the next node's first_token ends them
    uint32_t depth : 24 = 0;   // bytes from the tree's root
    uint32_t byte : 8 = 0;     // the last of those
  };

  // One tree for each length class, longest token in bytes; the last holds all longer ones. What a
  // grammar allows of short tokens depends on little of its state, so that is worth knowing apart.
  static constexpr std::array<uint32_t, 4> kTierBytes = {8, 16, 32, 64};
  static constexpr size_t kTiers = kTierBytes.size() + 1;

  // By token id. An empty string is a token that is never allowed (control tokens). Equal strings
  // are fine. Throws Error beyond 16 MiB for one token.
  explicit TokenTrie(std::vector<std::string> token_bytes);

  size_t n_tokens() const { return token_bytes_.size(); }
  std::string_view bytes(TokenId token) const { return token_bytes_[static_cast<size_t>(token)]; }

  // The root of a tier's tree; it has no tokens of its own.
  uint32_t root(size_t tier) const { return roots_[tier]; }
  // One more than there are, so that the last node's tokens end as the others' do.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  uint32_t max_depth() const { return max_depth_; }

 private:
  void add_tree(std::span<const TokenId> sorted);

  std::vector<std::string> token_bytes_;
  std::array<uint32_t, kTiers> roots_{};
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;
  uint32_t max_depth_ = 0;
};

}  // namespace sluice::text
