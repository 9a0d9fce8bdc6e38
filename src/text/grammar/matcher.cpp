// See matcher.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::text {
namespace {

// Stacks are tidied when they have doubled, and from the start where a text is ambiguous: then
// equal stacks of different origin are likely.
constexpr size_t kSmallStacks = 32;
constexpr size_t kManyPlaces = 8;

// The Effort for one byte.
constexpr size_t kStepsPerByte = 64 * grammar::kMostPlaces;

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const TokenTrie> trie,
                               std::vector<TokenId> end_tokens, size_t cache_bytes)
    : masks_(
          std::make_shared<grammar::TokenMasks>(std::move(grammar), std::move(trie), cache_bytes)),
      end_tokens_(std::move(end_tokens)) {
  for (const TokenId token : end_tokens_) {
    CHECK(token >= 0 && static_cast<size_t>(token) < masks_->trie().n_tokens());
  }
  reset();
}

void GrammarMatcher::reset() {
  position_ = Position();
  position_.places = {{masks_->grammar().begin(), grammar::StackGraph::kBottom}};
}

size_t GrammarMatcher::fill_mask(std::span<uint64_t> bits) const {
  std::ranges::fill(bits, 0);
  if (position_.finished) return 0;
  const size_t n_steps = masks_->add_allowed(position_.stacks, position_.places, bits);
  const bool may_end = is_complete();
  for (const TokenId token : end_tokens_) {
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(token) % 64);
    uint64_t& word = bits[static_cast<size_t>(token) / 64];
    word = may_end ? word | bit : word & ~bit;
  }
  return n_steps;
}

bool GrammarMatcher::accept(TokenId token) {
  CHECK(token >= 0 && static_cast<size_t>(token) < masks_->trie().n_tokens());
  if (std::ranges::find(end_tokens_, token) != end_tokens_.end()) {
    if (position_.finished || !is_complete()) return false;
    position_.finished = true;
    return true;
  }
  const std::string_view bytes = masks_->trie().bytes(token);
  return !bytes.empty() && accept_bytes(bytes);
}

bool GrammarMatcher::accept_bytes(std::string_view bytes) {
  if (position_.finished) return bytes.empty();
  const grammar::StackGraph::Mark mark = position_.stacks.mark();
  grammar::StackGraph::Scratch scratch;
  for (const grammar::Place& place : position_.places) scratch.work.add(place);
  for (const char byte : bytes) {
    scratch.effort = grammar::Effort(kStepsPerByte);
    position_.stacks.advance(masks_->grammar(), static_cast<uint8_t>(byte), scratch);
    std::swap(scratch.work, scratch.out);
    if (scratch.work.size() == 0) {
      position_.stacks.drop_since(mark);
      return false;
    }
  }
  position_.places.assign(scratch.work.all().begin(), scratch.work.all().end());
  if (position_.stacks.size() > 2 * position_.tidy_size + kSmallStacks ||
      position_.places.size() > kManyPlaces) {
    position_.stacks.tidy(position_.places);
    position_.tidy_size = position_.stacks.size();
  }
  return true;
}

bool GrammarMatcher::is_complete() const {
  grammar::Effort effort;
  return position_.finished ||
         position_.stacks.reaches_bottom(masks_->grammar(), position_.places, effort);
}

bool GrammarMatcher::is_dead() const {
  if (is_complete()) return false;
  std::vector<uint64_t> bits((masks_->trie().n_tokens() + 63) / 64);
  fill_mask(bits);
  return std::ranges::all_of(bits, [](uint64_t word) { return word == 0; });
}

}  // namespace sluice::text
