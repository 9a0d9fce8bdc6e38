// See bench_runner.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_runner.h"

#include "base/random.h"
#include "base/thread_pool.h"
#include "cli/bench/machine_speed.h"
#include "cli/flags/model_options.h"
#include "cli/terminal/progress_bar.h"

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

// In the time of the session's device, which need not be ours.
double seconds_of(const BenchTest& test, Session& session, const std::vector<TokenId>& tokens) {
  const auto seconds = [&] {
    return session.stats().prefill_seconds + session.stats().decode_seconds;
  };
  const double start = seconds();
  if (test.kind == BenchKind::prefill) {
    session.append(tokens);
  } else {
    // As a greedy text: the best token is found, and not used, since the model's own text may go
    // in circles.
    const std::span<const TokenId> text(tokens);
    session.generate(text.first(1), {.n_tokens = test.n_tokens - 1, .given = text.subspan(1)});
  }
  return seconds() - start;
}

void run_tests(const BenchPlan& plan, const Model& model, BenchRun& run) {
  Session session = open_session(model, plan.session);
  RandomTokens text(plan.seed, model.info().n_vocab);
  uint64_t n_total = static_cast<uint64_t>(plan.tests.back().depth);
  for (const BenchTest& test : plan.tests) {
    n_total += static_cast<uint64_t>(test.n_tokens) * static_cast<uint64_t>(plan.n_repeats + 1);
  }
  uint64_t n_done = 0;
  ProgressBar bar("measuring", "tokens");
  run.tests = plan.tests;
  for (BenchTest& test : run.tests) {
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
  run.placement = session.placement();
  run.experts = session.expert_stats();
}

// The pool ends here: two of them would be in each other's way. A device is compared with its
// forecast, not with what these cores can do.
MachineSpeed measure_machine(int n_threads, bool on_device) {
  ThreadPool pool(n_threads);
  if (on_device) return {.n_threads = pool.n_threads()};
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
  const bool on_device = plan.session.device.kind != DeviceKind::cpu;
  run.before = measure_machine(n_threads, on_device);
  run_tests(plan, load(n_threads), run);
  run.after = measure_machine(n_threads, on_device);
  return run;
}

}  // namespace sluice::cli
