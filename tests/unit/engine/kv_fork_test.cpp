// Forked sequences and a pool smaller than what all sequences could hold: random operations against
// a plain model (a list of values for each sequence), and what a step does when no page is left.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "base/random.h"
#include "engine/step/step_rows.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

constexpr int kPageTokens = 4;

model::Config config_of(int n_layers) {
  model::Config config;
  config.n_layers = n_layers;
  config.n_kv_heads = 2;
  config.head_dim = 1;  // so that a position of a head is one float
  config.memory.assign(static_cast<size_t>(n_layers), {.n_kv_heads = 2});
  return config;
}

// A cache of floats with sequences that hold known values, written and read through the tables.
class Forked {
 public:
  Forked(int n_sequences, int n_ctx, int n_pages)
      : cache(backend::memory_of(*ops_), config_of(2),
              {.k_type = quant::Type::f32,
               .v_type = quant::Type::f32,
               .n_sequences = n_sequences,
               .n_ctx = n_ctx,
               .page_tokens = kPageTokens,
               .n_pages = n_pages}),
        texts(static_cast<size_t>(n_sequences)) {}

  std::vector<int32_t> table() const {
    return {cache.page_table(), cache.page_table() + std::ssize(texts) * cache.table_stride()};
  }
  int32_t page(size_t sequence, int64_t index) const {
    return cache.page_table()[static_cast<int64_t>(sequence) * cache.table_stride() + index];
  }

  // The pages a step must take, counted from the tables: one where there is none, and for a page
  // that k sequences hold and w of them write, w copies, or one less where all of them write.
  int n_needed(std::span<const KvWrite> writes) const {
    std::map<int32_t, int> n_holders, n_writers;
    for (const int32_t id : table()) ++n_holders[id];
    int n = 0;
    for (const auto& [sequence, begin, end, is_decode, ends_message] : writes) {
      for (int64_t i = begin / kPageTokens; i * kPageTokens < end; ++i) {
        const int32_t id = page(static_cast<size_t>(sequence.value), i);
        id < 0 ? ++n : ++n_writers[id];
      }
    }
    for (const auto& [id, n_writing] : n_writers) n += std::min(n_writing, n_holders[id] - 1);
    return n;
  }

  void make_copies() {
    cache.make_copies(
        [](std::byte* to, const std::byte* from, uint64_t n) { std::memcpy(to, from, n); });
  }

  // What a step does once its positions are reserved.
  void write(const KvWrite& write, float value) {
    auto& text = texts[static_cast<size_t>(write.sequence.value)];
    for (int p = write.begin; p < write.end; ++p) {
      text.push_back(value);
      for_places(static_cast<size_t>(write.sequence.value), p,
                 [&](float& place, float part) { place = value + part; });
      value += 16;
    }
  }

  void expect_sound(const std::string& what) {
    for (size_t s = 0; s < texts.size(); ++s) {
      for (size_t p = 0; p < texts[s].size(); ++p) {
        for_places(s, static_cast<int>(p), [&](const float& place, float part) {
          ASSERT_EQ(place, texts[s][p] + part)
              << what << ": sequence " << s << " position " << p << " part " << part;
        });
      }
    }
    std::set<int32_t> held;
    for (size_t s = 0; s < texts.size(); ++s) {
      for (int64_t i = 0; i < cache.table_stride(); ++i) {
        const bool is_needed = i * kPageTokens < std::ssize(texts[s]);
        ASSERT_EQ(page(s, i) >= 0, is_needed) << what << ": sequence " << s << " place " << i;
        if (is_needed) held.insert(page(s, i));
      }
    }
    ASSERT_EQ(cache.n_free_pages() + std::ssize(held), cache.n_pages()) << what;
  }

 private:
  ThreadPool pool_{1};
  std::unique_ptr<backend::Ops> ops_ = backend::make_cpu_ops(pool_);

  // Every float that a position has: of both layers, keys and values, both heads.
  template <typename Body>
  void for_places(size_t sequence, int position, Body&& body) {
    const int64_t id = page(sequence, position / kPageTokens);
    float part = 0;
    for (const backend::KvLayerView& layer : cache.layers()) {
      for (std::byte* const data : {layer.k, layer.v}) {
        for (int h = 0; h < 2; ++h) {
          const int64_t slot = (id * 2 + h) * kPageTokens + position % kPageTokens;
          body(reinterpret_cast<float*>(data)[slot], part++);
        }
      }
    }
  }

 public:
  KvCache cache;
  std::vector<std::vector<float>> texts;  // what each sequence holds
};

// One random operation after another. Steps of some sequences may be refused, and may fail before
// or after their copies were made; then their positions are given back.
class RandomForks {
 public:
  explicit RandomForks(uint64_t seed) : seed_(seed) {}

  void run(int n_rounds) {
    for (int round = 0; round < n_rounds; ++round) {
      const uint64_t kind = draw(8);
      if (kind == 0) {
        fork();
      } else if (kind == 1) {
        const size_t s = draw(kSequences);
        truncate(s, draw(all_.texts[s].size() + 1));
      } else {
        step();
      }
      if (draw(2) == 0) continue;  // copies that a failed step left may wait for many rounds
      all_.make_copies();
      all_.expect_sound("seed " + std::to_string(seed_) + " round " + std::to_string(round));
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  int n_refused = 0, n_copied = 0, n_failed = 0;

 private:
  static constexpr int kSequences = 5, kContext = 30, kPages = 17;

  size_t draw(size_t n) { return random_bits(seed_, n_draws_++) % n; }

  void truncate(size_t s, size_t n) {
    all_.cache.truncate(SequenceId(static_cast<int32_t>(s)), static_cast<int>(n));
    all_.texts[s].resize(n);
  }

  void fork() {
    const size_t from = draw(kSequences), to = (from + 1 + draw(kSequences - 1)) % kSequences;
    const size_t n = draw(all_.texts[from].size() + 1);
    const int n_free = all_.cache.n_free_pages();
    all_.cache.fork(SequenceId(static_cast<int32_t>(from)), SequenceId(static_cast<int32_t>(to)),
                    static_cast<int>(n));
    EXPECT_GE(all_.cache.n_free_pages(), n_free) << "a fork takes no page";
    all_.texts[to].assign(all_.texts[from].begin(),
                          all_.texts[from].begin() + static_cast<std::ptrdiff_t>(n));
  }

  void step() {
    std::vector<KvWrite> writes;
    for (size_t s = 0; s < kSequences; ++s) {
      const size_t n_held = all_.texts[s].size(), n_more = draw(6);
      if (draw(2) == 0 || n_more == 0 || n_held + n_more > kContext) continue;
      writes.push_back({SequenceId(static_cast<int32_t>(s)), static_cast<int>(n_held),
                        static_cast<int>(n_held + n_more)});
    }
    const int n_needed = all_.n_needed(writes), n_free = all_.cache.n_free_pages();
    const auto before = all_.table();
    try {
      all_.cache.reserve(writes);
      ASSERT_LE(n_needed, n_free);
      ASSERT_EQ(all_.cache.n_free_pages(), n_free - n_needed);
    } catch (const Error& error) {
      ++n_refused;
      ASSERT_EQ(error.code(), Errc::out_of_memory);
      ASSERT_GT(n_needed, n_free) << "refused though there was room: " << error.what();
      ASSERT_EQ(all_.table(), before);
      ASSERT_EQ(all_.cache.n_free_pages(), n_free);
      return;
    }
    n_copied += n_changed(before);
    finish(writes);
  }

  int n_changed(std::span<const int32_t> before) const {
    const auto after = all_.table();
    int n = 0;
    for (size_t i = 0; i < after.size(); ++i) n += before[i] >= 0 && before[i] != after[i];
    return n;
  }

  void finish(std::span<const KvWrite> writes) {
    const size_t outcome = draw(6);
    if (outcome != 0) all_.make_copies();
    for (const KvWrite& write : writes) {
      if (outcome != 0) all_.write(write, value_ += 1024);
      if (outcome > 1) continue;
      ++n_failed;
      truncate(static_cast<size_t>(write.sequence.value), static_cast<size_t>(write.begin));
    }
  }

  uint64_t seed_;
  uint64_t n_draws_ = 0;
  float value_ = 0;
  Forked all_{kSequences, kContext, kPages};
};

TEST(KvFork, EverySequenceKeepsItsValuesThroughForksCutsAndRefusals) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RandomForks forks(seed);
    forks.run(400);
    if (HasFatalFailure()) return;
    EXPECT_GT(forks.n_refused, 10) << "seed " << seed << " shows little";
    EXPECT_GT(forks.n_copied, 10) << "seed " << seed << " shows little";
    EXPECT_GT(forks.n_failed, 10) << "seed " << seed << " shows little";
  }
}

TEST(KvFork, SharesAllPagesUntilOneOfTheTwoWrites) {
  Forked all(3, 12, 5);
  const KvWrite first{SequenceId(0), 0, 6};
  all.cache.reserve({&first, 1});
  all.write(first, 1024);
  all.cache.fork(SequenceId(0), SequenceId(1), 6);
  all.cache.fork(SequenceId(0), SequenceId(2), 4);
  EXPECT_EQ(all.cache.n_free_pages(), 3) << "a fork takes no page";
  EXPECT_EQ(all.page(1, 0), all.page(0, 0));
  EXPECT_EQ(all.page(1, 1), all.page(0, 1));
  EXPECT_EQ(all.page(2, 1), -1) << "a page behind the prefix";

  const KvWrite next{SequenceId(0), 6, 7}, other{SequenceId(1), 6, 7};
  const int32_t shared = all.page(0, 1);
  all.cache.reserve({&next, 1});
  EXPECT_NE(all.page(0, 1), shared) << "the writer takes the copy";
  EXPECT_EQ(all.page(1, 1), shared);
  EXPECT_EQ(all.page(0, 0), all.page(1, 0)) << "full pages stay shared";
  all.cache.reserve({&other, 1});
  EXPECT_EQ(all.page(1, 1), shared) << "nobody else holds it any more";
  EXPECT_EQ(all.cache.n_free_pages(), 2);
}

// A page that is still to be copied is given back and taken for another copy.
TEST(KvFork, CopiesAreMadeInTheOrderInWhichTheyWereAskedFor) {
  Forked all(4, 8, 3);
  for (const int s : {0, 2}) {
    const KvWrite text{SequenceId(s), 0, 2};
    all.cache.reserve({&text, 1});
    all.write(text, 1024.0f * static_cast<float>(s + 1));
    all.cache.fork(SequenceId(s), SequenceId(s + 1), 2);
  }
  const int32_t first = all.page(0, 0);
  const KvWrite writes[] = {{SequenceId(0), 2, 3}, {SequenceId(2), 2, 3}};
  all.cache.reserve({&writes[0], 1});
  all.cache.truncate(SequenceId(1), 0);
  all.cache.reserve({&writes[1], 1});
  ASSERT_EQ(all.page(2, 0), first) << "the test shows nothing";
  all.texts[3] = all.texts[2];
  all.make_copies();
  all.expect_sound("after both copies");
}

TEST(KvFork, RefusesWithWhatIsMissingAndWhatToDo) {
  Forked all(2, 40, 3);
  EXPECT_EQ(all.cache.n_pages(), 3);
  const KvWrite writes[] = {{SequenceId(0), 0, 5}, {SequenceId(1), 0, 8}};
  const std::string text = error_of(Errc::out_of_memory, [&] { all.cache.reserve(writes); });
  expect_contains(text, "sequence 1 needs a page for its positions 4 to 7");
  expect_contains(text, "all 3 pages are in use (0 of them shared)");
  expect_contains(text, "end or shorten a sequence");
  EXPECT_EQ(all.cache.n_free_pages(), 3);
}

// Rows of two sequences where the second finds no page, with two caches of which only the second is
// too small: both sequences and both caches are as before, and what fits is still accepted.
TEST(KvFork, AStepThatIsRefusedInTheMiddleLeavesLengthsAndPages) {
  Forked large(2, 40, 0), small(2, 40, 3);
  KvCache* const caches[] = {&large.cache, &small.cache};
  StepRows rows(2, 64, {});
  rows.append(std::vector<StepRow>(6, StepRow{1, SequenceId(0)}), caches);
  const auto tables = std::pair(large.table(), small.table());
  std::vector<StepRow> mixed(2, StepRow{1, SequenceId(0)});
  mixed.resize(8, StepRow{1, SequenceId(1)});
  error_of(Errc::out_of_memory, [&] { rows.append(mixed, caches); });
  rows.take_back(caches);
  EXPECT_EQ(rows.n_tokens(SequenceId(0)), 6);
  EXPECT_EQ(rows.n_tokens(SequenceId(1)), 0);
  EXPECT_EQ(std::pair(large.table(), small.table()), tables);
  rows.append({mixed.data(), 6}, caches);
  EXPECT_EQ(rows.n_tokens(SequenceId(0)), 8);
  EXPECT_EQ(rows.n_tokens(SequenceId(1)), 4);
  EXPECT_EQ(small.cache.n_free_pages(), 0);
}

// A text of 80 tokens; sequence 1 is forked from its first 70, sequence 2 from the first 64 of that
// fork. Then all three go on together, each with its own tokens.
void check_forked_texts(const model::Model& model, StepDriver& driver, const std::string& what) {
  std::vector<std::vector<TokenId>> texts(3, random_tokens(80, 31));
  std::vector<StepRow> rows;
  for (const TokenId token : texts[0]) rows.push_back({token, SequenceId(0)});
  driver.step(rows, policy::Phase::prefill, {});
  driver.fork(SequenceId(0), SequenceId(1), 70);
  driver.fork(SequenceId(1), SequenceId(2), 64);
  texts[1].resize(70);
  texts[2].resize(64);
  std::vector<Logits> got(3);
  for (TokenId token = 0; token < 8; ++token) {
    rows.clear();
    for (int s = 0; s < 3; ++s) {
      rows.push_back({40 * s + token, SequenceId(s), true});
      texts[static_cast<size_t>(s)].push_back(rows.back().token);
    }
    driver.step(rows, policy::Phase::decode, {[&](int64_t row, std::span<const float> logits) {
                  Logits& out = got[static_cast<size_t>(row)];
                  out.insert(out.end(), logits.begin(), logits.end());
                }});
  }
  const RunOptions options{.max_rows = 96, .kv = {.n_sequences = 1, .n_ctx = 96}};
  for (size_t s = 0; s < 3; ++s) {
    ASSERT_EQ(driver.n_tokens(SequenceId(static_cast<int32_t>(s))), std::ssize(texts[s])) << what;
    const Logits all = run_alone(model, texts[s], 96, options);
    expect_same_bits(std::span(all).last(got[s].size()), got[s],
                     what + " sequence " + std::to_string(s));
  }
}

TEST(KvFork, ForkedSequencesGiveTheLogitsOfTheirOwnTexts) {
  const OpenModel model("qwen3moe", "Q8_0");
  for (const auto& [page_tokens, n_pages] : {std::pair(64, 4), {16, 8}, {7, 18}, {64, 0}}) {
    Runner runner(
        *model,
        {.max_rows = 96,
         .kv = {.n_sequences = 3, .n_ctx = 96, .page_tokens = page_tokens, .n_pages = n_pages}});
    check_forked_texts(*model, runner.stepper(), "pages of " + std::to_string(page_tokens));
  }
}

TEST(KvFork, ForkedSequencesGiveTheLogitsOfTheirOwnTextsOnADevice) {
  const OpenModel model("qwen3moe", "Q8_0");
  for (const int n_host_layers : {0, 1}) {
    Placed placed(model, {.n_host_layers = n_host_layers, .n_sequences = 3, .max_rows = 96});
    check_forked_texts(*model, placed.runtime,
                       std::to_string(n_host_layers) + " layers on the host");
  }
}

// A fork of a text of two full pages needs one more page: refused while there is none, and the text
// is whole afterwards.
TEST(KvFork, AStepWithoutAPageLeavesAllSequencesAsTheyWere) {
  const OpenModel model("llama", "F32");
  const std::vector<TokenId> tokens = random_tokens(12, 33);
  const Logits all = run_alone(*model, tokens);
  Runner runner(*model,
                {.kv = {.n_sequences = 2, .n_ctx = 16, .page_tokens = kPageTokens, .n_pages = 3}});
  const auto append = [&](size_t from, size_t to, int sequence) {
    const size_t n_vocab = all.size() / tokens.size();
    expect_same_bits(
        std::span(all).subspan(from * n_vocab, (to - from) * n_vocab),
        runner.append(std::span(tokens).subspan(from, to - from), 64, SequenceId(sequence)),
        "sequence " + std::to_string(sequence) + " from " + std::to_string(from));
  };
  append(0, 8, 0);
  runner.stepper().fork(SequenceId(0), SequenceId(1), 8);
  error_of(Errc::out_of_memory, [&] {
    runner.stepper().step(std::vector<StepRow>{{tokens[8], SequenceId(0)}, {1, SequenceId(1)}},
                          policy::Phase::decode, {});
  });
  EXPECT_EQ(runner.stepper().n_tokens(SequenceId(0)), 8);
  EXPECT_EQ(runner.stepper().n_tokens(SequenceId(1)), 8);
  append(8, 11, 1);
  runner.stepper().truncate(SequenceId(1), 8);
  append(8, 12, 0);
}

}  // namespace
}  // namespace sluice::engine::test
