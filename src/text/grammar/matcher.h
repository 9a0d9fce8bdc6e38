// Follows a grammar token by token, and says which tokens may come next. A copy goes on
// independently and shares what was learned about the vocabulary, so one matcher of a grammar
// serves as the pattern for all requests that use it, on any threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/grammar/grammar.h"
#include "text/grammar/masks.h"
#include "text/grammar/stack.h"
#include "text/grammar/token_trie.h"

namespace sluice::text {

class GrammarMatcher {
 public:
  static constexpr size_t kDefaultCacheBytes = size_t{64} << 20;

  // `end_tokens` are allowed where the grammar may end, and nowhere else, whatever their bytes.
  GrammarMatcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                 std::vector<TokenId> end_tokens, size_t cache_bytes = kDefaultCacheBytes);

  // Bit t of the mask, word t / 64, is set iff accept(t) would be true. `bits` has room for all
  // tokens of the trie; what it has beyond that is cleared. Throws Error if the grammar is too
  // ambiguous (grammar::kMostPlaces, grammar::Effort). Returns the steps that it took.
  size_t fill_mask(std::span<uint64_t> bits) const;

  // Goes on by a token, or by text that need not end where a token does. False, and nothing
  // changes, where that is not allowed. After an end token nothing is.
  bool accept(TokenId token);
  bool accept_bytes(std::string_view bytes);

  // The grammar may end here, or has ended.
  bool is_complete() const;
  // An end token was accepted.
  bool is_finished() const { return position_.finished; }
  // Neither a token nor the end is possible. Only a vocabulary without the bytes a grammar needs
  // leads here, as every text that is accepted can be continued to a complete one.
  bool is_dead() const;

  // Where the matcher is: small, and independent of the matcher's life.
  class Position {
    friend class GrammarMatcher;
    grammar::StackGraph stacks;
    std::vector<grammar::Place> places;
    size_t tidy_size = 0;  // of stacks, when it was tidied last
    bool finished = false;
  };
  Position snapshot() const { return position_; }
  // Back to a snapshot of this matcher or of a copy of it.
  void restore(Position position) { position_ = std::move(position); }
  // Back to the beginning.
  void reset();

 private:
  // Shared by all copies: see the top of the file.
  std::shared_ptr<grammar::TokenMasks> masks_;
  std::vector<TokenId> end_tokens_;
  Position position_;
};

}  // namespace sluice::text
