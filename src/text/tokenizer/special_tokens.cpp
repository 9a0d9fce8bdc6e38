// See special_tokens.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/special_tokens.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "base/check.h"

namespace sluice::text {

SpecialTokens::SpecialTokens() { first_.fill(kNone); }

SpecialTokens::NodeId SpecialTokens::child(NodeId node, char c) const {
  for (const auto& [edge, id] : nodes_[static_cast<size_t>(node)].children) {
    if (edge == c) return id;
  }
  return kNone;
}

void SpecialTokens::add(std::string_view text, TokenId token) {
  if (text.empty() || text.size() > kMaxBytes) return;
  const auto new_node = [&] {
    nodes_.emplace_back();
    return static_cast<NodeId>(nodes_.size() - 1);
  };
  NodeId& first = first_[static_cast<uint8_t>(text[0])];
  if (first == kNone) first = new_node();
  NodeId node = first;
  for (const char c : text.substr(1)) {
    NodeId next = child(node, c);
    if (next == kNone) {
      next = new_node();
      nodes_[static_cast<size_t>(node)].children.emplace_back(c, next);
    }
    node = next;
  }
  nodes_[static_cast<size_t>(node)].token = token;
  longest_text_ = std::max(longest_text_, text.size());
}

SpecialTokens::Match SpecialTokens::longest(std::string_view text, size_t limit) const {
  Match best;
  NodeId node = first_[static_cast<uint8_t>(text[0])];
  const size_t end = std::min(text.size(), limit);
  for (size_t n = 1; node != kNone && n <= end; ++n) {
    const TokenId token = nodes_[static_cast<size_t>(node)].token;
    if (token != Fragment::kPlain) best = {n, token};
    if (n < end) node = child(node, text[n]);
  }
  return best;
}

bool SpecialTokens::may_begin(std::string_view text) const {
  NodeId node = text.empty() ? kNone : first_[static_cast<uint8_t>(text[0])];
  for (size_t n = 1; node != kNone; ++n) {
    if (n == text.size() || nodes_[static_cast<size_t>(node)].token != Fragment::kPlain)
      return true;
    node = child(node, text[n]);
  }
  return false;
}

// The tokens to cut out, in order. Candidates are taken by length, longest first; one that runs
// into a longer neighbour comes back as the next shorter token that begins at its place.
std::vector<Fragment> SpecialTokens::choose(std::string_view text) const {
  std::map<size_t, std::vector<uint32_t>, std::greater<>> starts_by_length;
  for (size_t at = 0; at < text.size(); ++at) {
    if (first_[static_cast<uint8_t>(text[at])] == kNone) continue;
    const Match match = longest(text.substr(at), longest_text_);
    if (match.n_bytes > 0) starts_by_length[match.n_bytes].push_back(static_cast<uint32_t>(at));
  }
  std::vector<Fragment> chosen;
  if (starts_by_length.empty()) return chosen;

  std::vector<bool> taken(text.size());
  while (!starts_by_length.empty()) {
    auto [length, starts] = std::move(*starts_by_length.begin());
    starts_by_length.erase(starts_by_length.begin());
    std::ranges::sort(starts);
    for (const uint32_t at : starts) {
      if (taken[at]) continue;
      // What is taken is at least as long, so it cannot lie within: the last byte tells.
      const bool is_free = !taken[at + length - 1];
      const auto from = taken.begin() + at;
      const auto room =
          is_free ? length : static_cast<size_t>(std::find(from, taken.end(), true) - from);
      const Match match = longest(text.substr(at), room);
      if (is_free) {
        chosen.push_back({match.token, text.substr(at, length)});
        std::fill_n(from, length, true);
      } else if (match.n_bytes > 0) {
        starts_by_length[match.n_bytes].push_back(at);
      }
    }
  }
  std::ranges::sort(chosen, {}, [](const Fragment& f) { return f.text.data(); });
  return chosen;
}

std::vector<Fragment> SpecialTokens::cut(std::string_view text) const {
  CHECK(text.size() < std::numeric_limits<uint32_t>::max());
  std::vector<Fragment> fragments;
  const auto add_plain = [&](size_t from, size_t to) {
    if (to > from) fragments.push_back({Fragment::kPlain, text.substr(from, to - from)});
  };
  size_t plain_from = 0;
  for (const Fragment& token : choose(text)) {
    const auto at = static_cast<size_t>(token.text.data() - text.data());
    add_plain(plain_from, at);
    fragments.push_back(token);
    plain_from = at + token.text.size();
  }
  add_plain(plain_from, text.size());
  return fragments;
}

}  // namespace sluice::text
