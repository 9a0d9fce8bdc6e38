// See bench_runner.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_runner.h"

#include <chrono>

#include "base/machine_speed.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "cli/progress_bar.h"

namespace sluice::cli {
namespace {

// An endless text that means nothing.
class RandomTokens {
 public:
  RandomTokens(uint64_t seed, int n_vocab) : seed_(seed), n_vocab_(n_vocab) {}

  std::vector<TokenId> take(int n) {
    std::vector<TokenId> tokens(static_cast<size_t>(n));
    for (TokenId& token : tokens) {
      token = static_cast<TokenId>(random_bits(seed_, next_++) % static_cast<uint64_t>(n_vocab_));
    }
    return tokens;
  }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
  int n_vocab_;
};

double seconds_of(const BenchTest& test, Session& session, const std::vector<TokenId>& tokens) {
  const auto start = std::chrono::steady_clock::now();
  if (test.kind == BenchKind::prefill) {
    session.append(tokens);
  } else {
    for (const TokenId& token : tokens) session.append({&token, 1});
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<BenchTest> run_tests(const BenchPlan& plan, const Model& model) {
  Session session(model, plan.session);
  RandomTokens text(plan.seed, model.info().n_vocab);
  uint64_t n_total = static_cast<uint64_t>(plan.tests.back().depth);
  for (const BenchTest& test : plan.tests) {
    n_total += static_cast<uint64_t>(test.n_tokens) * static_cast<uint64_t>(plan.n_repeats + 1);
  }
  uint64_t n_done = 0;
  ProgressBar bar("measuring", "tokens");
  std::vector<BenchTest> tests = plan.tests;
  for (BenchTest& test : tests) {
    const int n_missing = test.depth - session.n_tokens();
    if (n_missing > 0) session.append(text.take(n_missing));
    n_done += static_cast<uint64_t>(n_missing);
    for (int repeat = -1; repeat < plan.n_repeats; ++repeat) {
      bar.update(n_done, n_total);
      const double seconds = seconds_of(test, session, text.take(test.n_tokens));
      if (repeat >= 0) test.seconds.push_back(seconds);  // the first was to warm up
      session.truncate(test.depth);
      n_done += static_cast<uint64_t>(test.n_tokens);
    }
  }
  return tests;
}

// The pool ends here: two of them would be in each other's way.
MachineSpeed measure_machine(int n_threads) {
  ThreadPool pool(n_threads);
  const Int8Speed int8 = int8_speed(pool);
  return {.n_threads = pool.n_threads(),
          .read_bytes = read_bytes_per_second(pool),
          .int8_ops = int8.ops_per_second,
          .int8_instruction = std::string(int8.instruction)};
}

}  // namespace

BenchRun run_bench(const BenchPlan& plan, int n_threads,
                   const std::function<Model(int n_threads)>& load) {
  BenchRun run;
  run.before = measure_machine(n_threads);
  run.tests = run_tests(plan, load(n_threads));
  run.after = measure_machine(n_threads);
  return run;
}

}  // namespace sluice::cli
