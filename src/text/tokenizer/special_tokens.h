// Finds special tokens in text and cuts it around them. The longest text wins wherever it stands,
// and of equal lengths the first in the text: `<|im_start|>` is found whole, whatever shorter token
// begins before it and reaches into it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace sluice::text {

// Either a token or a stretch of plain text.
struct Fragment {
  static constexpr TokenId kPlain = -1;
  TokenId token = kPlain;
  std::string_view text;  // in the text that was cut
};

// A trie of the tokens' texts, walked once from each byte that one of them begins with: plain text
// costs a table look-up for each byte, however many tokens there are.
class SpecialTokens {
 public:
  SpecialTokens();

  // Of two tokens with one text the later one counts. An empty text is never found, nor is one of
  // more than kMaxBytes: each place of a text may cost as many steps.
  void add(std::string_view text, TokenId token);
  static constexpr size_t kMaxBytes = 1024;

  // Whether the text begins with a token, or might if it went on.
  bool may_begin(std::string_view text) const;

  // In order, without gaps, none empty. text.size() < 2^32.
  std::vector<Fragment> cut(std::string_view text) const;

 private:
  using NodeId = int32_t;
  static constexpr NodeId kNone = -1;
  struct Node {
    TokenId token = Fragment::kPlain;
    std::vector<std::pair<char, NodeId>> children;
  };
  struct Match {
    size_t n_bytes = 0;  // 0: none
    TokenId token = Fragment::kPlain;
  };

  NodeId child(NodeId node, char c) const;
  // The longest token that `text` begins with, of at most `limit` bytes.
  Match longest(std::string_view text, size_t limit) const;
  std::vector<Fragment> choose(std::string_view text) const;

  std::array<NodeId, 256> first_;  // by a text's first byte
  std::vector<Node> nodes_;
  size_t longest_text_ = 0;
};

}  // namespace sluice::text
