// The prefix trees of a vocabulary: every token is found once, in its length class, at its bytes.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/token_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "unit/text/grammar/random.h"
#include "unit/text/grammar/vocabulary.h"

namespace sluice::text {
namespace {

// Token ids by the bytes on the path to them, and the tree they were met in.
struct Found {
  std::string bytes;
  size_t tier = 0;
  int n_times = 0;
};

std::map<TokenId, Found> walk(const TokenTrie& trie) {
  std::map<TokenId, Found> found;
  const auto nodes = trie.nodes();
  for (size_t tier = 0; tier < TokenTrie::kTiers; ++tier) {
    const uint32_t root = trie.root(tier);
    EXPECT_EQ(nodes[root].depth, 0u);
    std::string path;
    std::vector<uint32_t> ends = {nodes[root].end};
    for (uint32_t i = root + 1; i < nodes[root].end; ++i) {
      path.resize(nodes[i].depth - 1);
      ends.resize(nodes[i].depth);
      EXPECT_LE(nodes[i].end, ends.back()) << "node " << i << " ends behind its parent";
      EXPECT_GT(nodes[i].end, i);
      path += static_cast<char>(nodes[i].byte);
      ends.push_back(nodes[i].end);
      for (uint32_t t = nodes[i].first_token; t < nodes[i + 1].first_token; ++t) {
        Found& token = found[trie.tokens()[t]];
        token.bytes = path;
        token.tier = tier;
        ++token.n_times;
      }
    }
  }
  return found;
}

void expect_all_found(const std::vector<std::string>& tokens) {
  const TokenTrie trie(tokens);
  const auto found = walk(trie);
  ASSERT_EQ(trie.n_tokens(), tokens.size());
  size_t n_with_bytes = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    EXPECT_EQ(trie.bytes(static_cast<TokenId>(id)), tokens[id]);
    if (tokens[id].empty()) continue;
    ++n_with_bytes;
    const auto place = found.find(static_cast<TokenId>(id));
    ASSERT_NE(place, found.end()) << "token " << id << " is in no tree";
    EXPECT_EQ(place->second.bytes, tokens[id]) << "token " << id;
    EXPECT_EQ(place->second.n_times, 1) << "token " << id;
    const size_t tier = place->second.tier;
    if (tier < TokenTrie::kTierBytes.size()) {
      EXPECT_LE(tokens[id].size(), TokenTrie::kTierBytes[tier]) << "token " << id;
    }
    if (tier > 0) {
      EXPECT_GT(tokens[id].size(), TokenTrie::kTierBytes[tier - 1]) << "token " << id;
    }
  }
  EXPECT_EQ(found.size(), n_with_bytes);
}

TEST(TokenTrie, HoldsEveryTokenOnceAtItsBytes) {
  expect_all_found({"a", "ab", "abc", "b", "", "ab", "a", std::string(9, 'x'), std::string("\0", 1),
                    std::string(16, 'x'), std::string(17, 'x'), std::string(64, 'x'),
                    std::string(65, 'x'), std::string(300, 'x'), "\xff\xfe"});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    test::Dice dice(seed);
    expect_all_found(test::random_vocabulary(dice, 300));
  }
}

TEST(TokenTrie, TakesNoTokens) {
  const TokenTrie none({}), empty({"", ""});
  EXPECT_TRUE(walk(none).empty());
  EXPECT_TRUE(walk(empty).empty());
  EXPECT_EQ(empty.n_tokens(), 2u);
  EXPECT_EQ(none.max_depth(), 0u);
}

TEST(TokenTrie, SharesTheBeginningsOfANaturalVocabulary) {
  const std::vector<std::string> tokens = test::natural_vocabulary(20000);
  size_t n_bytes = 0;
  for (const std::string& token : tokens) n_bytes += token.size();
  const TokenTrie trie(tokens);
  // Without sharing there would be one node for each byte.
  EXPECT_LT(trie.nodes().size(), n_bytes * 2 / 3);
}

TEST(TokenTrie, RefusesATokenLongerThanItCanCount) {
  try {
    const TokenTrie trie({std::string(1 << 24, 'x')});
    FAIL() << "16 MiB were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file);
    EXPECT_EQ(std::string(error.what()).find("token 0 has 16777216 bytes"), 0u) << error.what();
  }
}

}  // namespace
}  // namespace sluice::text
