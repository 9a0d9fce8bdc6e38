// What holds for the expert cache whatever the policy: capacity, protection, floors, slots, limits,
// and that the same steps give the same decisions.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/expert_cache.h"

#include <map>
#include <set>

#include "base/error.h"
#include "support/error_of.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

// Layers of two sizes, one of them pinned.
CacheOptions mixed_options(PolicyKind policy, int n_slots) {
  CacheOptions options{.policy = policy, .n_experts = 32, .layers = {}};
  for (int l = 0; l < 7; ++l) {
    options.layers.push_back({l % 3 == 0 ? uint64_t{300} : uint64_t{200}, n_slots, l == 2});
  }
  return options;
}

RoutingTrace mixed_trace(uint64_t seed, int n_decode = 120) {
  return generate_trace({.shape = generator_shape(7, 32, 4),
                         .seed = seed,
                         .n_prefill = 10,
                         .n_decode = n_decode,
                         .topic_steps = 50});
}

// Follows the moves with books of its own, and checks every rule on the way.
class Bookkeeper {
 public:
  explicit Bookkeeper(const ExpertCache& cache) : cache_(cache) {}

  void apply(std::span<const Move> moves, const std::set<ExpertKey>& used) {
    for (const Move& move : moves) {
      ASSERT_EQ(move.pool, cache_.pool(move.in.layer));
      ASSERT_GE(move.slot.value, 0);
      ASSERT_LT(move.slot.value, cache_.n_slots(move.pool)) << "capacity";
      const auto place = std::pair(move.pool, move.slot.value);
      if (move.evicts) {
        ASSERT_EQ(cache_.pool(move.out.layer), move.pool) << "sizes do not mix";
        ASSERT_EQ(held_[place], move.out);
        ASSERT_FALSE(used.contains(move.out)) << "an expert of the step left";
        residents_.erase(move.out);
      } else {
        ASSERT_FALSE(held_.contains(place)) << "the slot was not free";
      }
      ASSERT_TRUE(residents_.insert(move.in).second) << "it was resident";
      held_[place] = move.in;
    }
  }

  void expect_same(int n_layers, int n_experts) const {
    for (int l = 0; l < n_layers; ++l) {
      int n = 0;
      for (int e = 0; e < n_experts; ++e) {
        const ExpertKey key{LayerId(l), ExpertId(e)};
        ASSERT_EQ(cache_.resident(key.layer, key.expert), residents_.contains(key));
        n += residents_.contains(key);
        if (!residents_.contains(key)) continue;
        const auto place =
            std::pair(cache_.pool(key.layer), cache_.slot(key.layer, key.expert).value);
        ASSERT_EQ(held_.at(place), key);
      }
      ASSERT_EQ(cache_.n_resident(LayerId(l)), n);
    }
  }

 private:
  const ExpertCache& cache_;
  std::map<std::pair<int, int>, ExpertKey> held_;
  std::set<ExpertKey> residents_;
};

std::vector<Move> run_step(ExpertCache& cache, const RoutingStep& step) {
  cache.begin_step(step.phase);
  for (size_t l = 0; l + 1 < step.begin.size(); ++l) {
    const LayerId layer(static_cast<int>(l));
    const auto routed = step.layer(layer.value);
    int n_resident = 0;
    for (const RoutedExpert& r : routed) n_resident += cache.resident(layer, r.expert);
    EXPECT_EQ(cache.touch(layer, routed), n_resident);
  }
  const auto moves = cache.end_step();
  return {moves.begin(), moves.end()};
}

std::set<ExpertKey> used_by(const RoutingStep& step) {
  std::set<ExpertKey> used;
  for (size_t l = 0; l + 1 < step.begin.size(); ++l) {
    const LayerId layer(static_cast<int>(l));
    for (const RoutedExpert& r : step.layer(layer.value)) used.insert({layer, r.expert});
  }
  return used;
}

TEST(ExpertCache, CapacityIsHeldAndNobodyOfTheStepLeaves) {
  for (const PolicyKind policy : kPolicies) {
    for (const int n_slots : {0, 1, 3, 4, 9, 20, 32}) {
      SCOPED_TRACE(testing::Message() << policy_name(policy) << ", " << n_slots << " slots");
      ExpertCache cache(mixed_options(policy, n_slots));
      Bookkeeper books(cache);
      books.apply(cache.fill(), {});
      for (const RoutingStep& step : mixed_trace(7).steps) {
        books.apply(run_step(cache, step), used_by(step));
        books.expect_same(7, 32);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(ExpertCache, PinnedLayersStayWholeAndNeverMiss) {
  ExpertCache cache(mixed_options(PolicyKind::mixture, 2));
  EXPECT_EQ(cache.fill().size(), 32u);
  for (const RoutingStep& step : mixed_trace(8).steps) {
    for (const Move& move : run_step(cache, step)) {
      EXPECT_NE(move.in.layer, LayerId(2));
      EXPECT_NE(move.out.layer, move.evicts ? LayerId(2) : LayerId(-1));
    }
    EXPECT_EQ(cache.n_resident(LayerId(2)), 32);
  }
}

TEST(ExpertCache, NoLayerLosesItsFloorToOthers) {
  for (const PolicyKind policy : {PolicyKind::mixture, PolicyKind::slru, PolicyKind::dlfu}) {
    ExpertCache cache(mixed_options(policy, 8));
    cache.fill();
    for (const RoutingStep& step : mixed_trace(9).steps) run_step(cache, step);
    bool traded = false;
    for (const int l : {0, 1, 3, 4, 5, 6}) {
      EXPECT_GE(cache.n_resident(LayerId(l)), 4) << policy_name(policy);
      traded |= cache.n_resident(LayerId(l)) != 8;
    }
    EXPECT_TRUE(traded) << "above the floor, slots go where they are worth most";
  }
}

TEST(ExpertCache, LruKeepsEqualShares) {
  ExpertCache cache(mixed_options(PolicyKind::lru, 5));
  for (const RoutingStep& step : mixed_trace(9).steps) run_step(cache, step);
  for (const int l : {0, 1, 3, 4, 5, 6}) EXPECT_EQ(cache.n_resident(LayerId(l)), 5);
}

TEST(ExpertCache, TheSameStepsGiveTheSameDecisions) {
  for (const PolicyKind policy : kPolicies) {
    const auto decisions = [policy] {
      ExpertCache cache(mixed_options(policy, 6));
      std::vector<std::array<int, 6>> all;
      for (const RoutingStep& step : mixed_trace(11).steps) {
        for (const Move& m : run_step(cache, step)) {
          all.push_back({m.in.layer.value, m.in.expert.value, m.out.layer.value, m.out.expert.value,
                         m.pool, m.slot.value});
        }
      }
      return all;
    };
    EXPECT_EQ(decisions(), decisions()) << policy_name(policy);
    EXPECT_GT(decisions().size(), 100u);
  }
}

TEST(ExpertCache, CopiesStayBelowTheCapOfAStep) {
  CacheOptions options = mixed_options(PolicyKind::mixture, 6);
  options.max_copy_bytes = 650;
  ExpertCache cache(options);
  cache.fill();
  uint64_t most = 0;
  for (const RoutingStep& step : mixed_trace(12).steps) {
    const uint64_t before = cache.counts().copied_bytes;
    run_step(cache, step);
    const uint64_t bytes = cache.counts().copied_bytes - before;
    EXPECT_LE(bytes, 650u);
    most = std::max(most, bytes);
  }
  EXPECT_GE(most, 500u);
}

TEST(ExpertCache, DearerCopiesMeanFewerOfThem) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(12, 64, 4), .n_decode = 300});
  uint64_t previous = UINT64_MAX;
  for (const double cost : {0.0, 0.5, 1.5, 4.0}) {
    const ReplayResult result = replay_at(trace, PolicyKind::mixture, 12.5, {.copy_cost = cost});
    EXPECT_LT(result.n_copies, previous) << cost;
    EXPECT_GT(result.hit_rate(), 0.3) << cost;
    previous = result.n_copies;
  }
}

TEST(ExpertCache, CopiesThatNothingHidesAreDearer) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(12, 64, 4), .n_decode = 300});
  const auto n_copies = [&](uint64_t hidden_bytes) {
    ExpertCache cache({.n_experts = 64,
                       .layers = share_slots(trace.header.shape, 0.125),
                       .copy_cost = 0.1,
                       .wait_cost = 1e6});
    uint64_t most = 0;
    for (const RoutingStep& step : trace.steps) {
      const uint64_t before = cache.counts().copied_bytes;
      cache.begin_step(step.phase);
      for (int l = 0; l < 12; ++l) cache.touch(LayerId(l), step.layer(l));
      cache.end_step(hidden_bytes);
      if (step.phase == Phase::decode) most = std::max(most, cache.counts().copied_bytes - before);
    }
    EXPECT_LE(most, hidden_bytes);
    return cache.counts().n_copies;
  };
  EXPECT_LT(n_copies(0), n_copies(9'000'000));
  EXPECT_LT(n_copies(9'000'000), n_copies(90'000'000));
}

TEST(ExpertCache, BelowOneTokensWorthOfSlotsNothingCollapses) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(24, 64, 8), .n_decode = 150});
  for (const PolicyKind policy : kPolicies) {
    for (const double percent : {1.6, 3.2, 6.3, 12.4}) {  // one token takes 12.5 %
      EXPECT_GT(hit_percent(trace, policy, percent), percent * 2)
          << policy_name(policy) << " at " << percent << " %";
    }
  }
}

TEST(ExpertCache, AProfileFillsTheCacheWithWhatWasUsedMost) {
  const RoutingTrace trace = mixed_trace(13, 400);
  CacheOptions options = mixed_options(PolicyKind::mixture, 8);
  ExpertCache first(options);
  for (const RoutingStep& step : trace.steps) run_step(first, step);
  RoutingProfile profile(7, 32);
  profile.add_run(first.uses(), first.n_steps());

  for (const PolicyKind policy : kPolicies) {
    options.policy = policy;
    ExpertCache warm(options);
    Bookkeeper books(warm);
    books.apply(warm.fill(&profile), {});
    books.expect_same(7, 32);
    ExpertCache cold(options);
    cold.fill();
    for (int s = 0; s < 20; ++s) {
      run_step(warm, trace.steps[static_cast<size_t>(s)]);
      run_step(cold, trace.steps[static_cast<size_t>(s)]);
    }
    EXPECT_GT(warm.counts().n_hits, cold.counts().n_hits) << policy_name(policy);
  }
}

TEST(ExpertCache, WhereNothingIsKnownSlotsAreFilledEvenly) {
  for (const PolicyKind policy : kPolicies) {
    CacheOptions options = mixed_options(policy, 8);
    RoutingProfile profile(7, 32);
    std::vector<uint32_t> uses(size_t{7} * 32, 0);
    uses[31] = 5;  // of layer 0
    profile.add_run(uses, 10);
    ExpertCache cache(options);
    Bookkeeper books(cache);
    books.apply(cache.fill(&profile, Unprofiled::any), {});
    books.expect_same(7, 32);
    EXPECT_TRUE(cache.resident(LayerId(0), ExpertId(31))) << policy_name(policy);
    for (const int l : {0, 1, 3, 4, 5, 6}) {
      EXPECT_EQ(cache.n_resident(LayerId(l)), 8) << policy_name(policy) << ", layer " << l;
    }
  }
}

// Of those that were loaded though nothing was known, nobody stays in the way of an expert that is
// used; and nothing known leaves while one of them is there.
TEST(ExpertCache, ExpertsOfWhichNothingIsKnownLeaveFirst) {
  ExpertCache cache({.n_experts = 8, .layers = {{100, 4}}, .copy_cost = 0.1});
  cache.fill(nullptr, Unprofiled::any);  // 0 to 3
  const auto use = [&](std::vector<RoutedExpert> routed) {
    cache.begin_step(Phase::decode);
    cache.touch(LayerId(0), routed);
    return cache.end_step();
  };
  use({{ExpertId(1), 0.5f}, {ExpertId(7), 0.5f}});
  for (int i = 0; i < 2; ++i) {
    const int newcomer = 6 - i;
    const std::span<const Move> moves = use({{ExpertId(newcomer), 1.0f}});
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_TRUE(moves[0].out.expert == ExpertId(0) || moves[0].out.expert == ExpertId(2) ||
                moves[0].out.expert == ExpertId(3))
        << moves[0].out.expert.value;
  }
  for (const int e : {1, 5, 6, 7}) EXPECT_TRUE(cache.resident(LayerId(0), ExpertId(e))) << e;
}

// A full cache of experts of which nothing is known learns a text as quickly as an empty one.
TEST(ExpertCache, AFilledCacheLearnsAsQuicklyAsAnEmptyOne) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(12, 64, 4), .n_decode = 300});
  for (const double cost : {0.0, 0.5, 1.5}) {
    const auto hits = [&](Unprofiled others) {
      ExpertCache cache(
          {.n_experts = 64, .layers = share_slots(trace.header.shape, 0.25), .copy_cost = cost});
      cache.fill(nullptr, others);
      for (const RoutingStep& step : trace.steps) {
        cache.begin_step(step.phase);
        for (int l = 0; l < 12; ++l) cache.touch(LayerId(l), step.layer(l));
        cache.end_step();
      }
      return static_cast<double>(cache.counts().n_hits);
    };
    EXPECT_GT(hits(Unprofiled::any), 0.995 * hits(Unprofiled::none)) << cost;
  }
}

TEST(ExpertCache, TheProfileOfAnotherModelIsRefused) {
  // Another number of experts, of layers, and both exchanged, which has as many counts.
  for (const auto& [n_layers, n_experts] : {std::pair{7, 64}, {7, 31}, {6, 32}, {8, 32}, {32, 7}}) {
    ExpertCache cache(mixed_options(PolicyKind::mixture, 8));
    const RoutingProfile other(n_layers, n_experts);
    EXPECT_EQ(sluice::test::error_of(Errc::bad_file, [&] { cache.fill(&other); }),
              cat("routing profile: ", n_layers, " layers of ", n_experts,
                  " experts; expected 7 of 32 (the profile of another model?)"));
    const RoutingProfile same(7, 32);
    cache.fill(&same);  // and lives on
    run_step(cache, mixed_trace(13).steps[0]);
  }
}

TEST(ExpertCache, APrefillChunkIsOneStep) {
  ExpertCache cache(mixed_options(PolicyKind::mixture, 8));
  cache.fill();
  const RoutingTrace trace = mixed_trace(14);
  cache.begin_step(Phase::prefill, 50);
  for (int l = 0; l < 7; ++l) {
    for (int row = 0; row < 50; ++row) {
      cache.touch(LayerId(l), trace.steps[static_cast<size_t>(row)].layer(l));
    }
  }
  EXPECT_GT(cache.end_step().size(), 40u);
  EXPECT_EQ(cache.n_steps(), 1u);
  for (const RoutingStep& step : trace.steps) run_step(cache, step);
}

// Of the rows of a chunk, as many as used it: not one for each expert.
TEST(ExpertCache, InAPrefillChunkTheExpertOfMoreRowsIsWorthMore) {
  ExpertCache cache({.n_experts = 8, .layers = {{100, 1}}});
  cache.fill();
  cache.begin_step(Phase::prefill, 10);
  for (int row = 0; row < 10; ++row) {
    std::vector<RoutedExpert> routed;
    if (row == 0) routed.push_back({ExpertId(2), 1.0f});
    routed.push_back({ExpertId(5), 1.0f});
    cache.touch(LayerId(0), routed);
  }
  const std::span<const Move> moves = cache.end_step();
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].in.expert, ExpertId(5));
}

// The link carries a prompt's experts anyway.
TEST(ExpertCache, CopiesOfAPrefillCostNothing) {
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    ExpertCache cache({.n_experts = 8, .layers = {{100, 4}}, .copy_cost = 1e9});
    cache.fill();
    cache.begin_step(phase);
    cache.touch(LayerId(0), std::vector<RoutedExpert>{{ExpertId(1), 0.5f}, {ExpertId(2), 0.5f}});
    EXPECT_EQ(cache.end_step().size(), phase == Phase::prefill ? 2u : 0u);
  }
}

// Several rows of a decode step, of sequences or to be verified: their copies cost what a token's
// do, and an expert of one row is as much used as one of all.
TEST(ExpertCache, RowsOfADecodeStepAreNoPrompt) {
  for (const double copy_cost : {1e9, 0.0}) {
    ExpertCache cache({.n_experts = 8, .layers = {{100, 2}}, .copy_cost = copy_cost});
    cache.fill();
    cache.begin_step(Phase::decode, 8);
    for (int row = 0; row < 8; ++row) {
      std::vector<RoutedExpert> routed = {{ExpertId(5), 1.0f}};
      if (row == 0) routed.push_back({ExpertId(2), 1.0f});
      cache.touch(LayerId(0), routed);
    }
    EXPECT_EQ(cache.end_step().size(), copy_cost > 0.0 ? 0u : 2u);
    EXPECT_EQ(cache.n_steps(), 1u);
  }
}

TEST(ExpertCache, SharesAddUpToTheBudget) {
  RoutingShape shape = generator_shape(5, 10, 2, 100);
  shape.expert_bytes = {100, 200, 100, 0, 200};
  const std::vector<CacheLayer> layers = share_slots(shape, 0.25);
  EXPECT_EQ(layers[0].n_slots + layers[2].n_slots, 5);
  EXPECT_EQ(layers[1].n_slots + layers[4].n_slots, 5);
  EXPECT_EQ(layers[3].n_slots, 0);
  for (const CacheLayer& layer : share_slots(generator_shape(4, 8, 2), 1.0)) {
    EXPECT_EQ(layer.n_slots, 8);
  }
}

TEST(ReplacementPolicies, NamesGoBothWays) {
  for (const PolicyKind policy : kPolicies) EXPECT_EQ(parse_policy(policy_name(policy)), policy);
  EXPECT_EQ(parse_policy("default"), PolicyKind::mixture);
  try {
    parse_policy("mru");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_request);
    EXPECT_STREQ(error.what(),
                 "cache policy 'mru'; expected one of default, lru, lru-global, slru, lfu, dlfu");
  }
}

}  // namespace
}  // namespace sluice::policy::test
