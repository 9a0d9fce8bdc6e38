// sluice run: continues a prompt, for now one of token ids.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/command.h"
#include "cli/flag_checks.h"
#include "cli/model_options.h"

namespace sluice::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  GenerateOptions generate;
  bool ignore_eos = false;
  bool json = false;
};

const char* describe(StopReason reason) {
  switch (reason) {
    case StopReason::length:
      return "length";
    case StopReason::end_of_text:
      return "end_of_text";
    case StopReason::callback:
      return "callback";
    case StopReason::context_full:
      return "context_full";
  }
  return "unknown";
}

double per_second(int64_t n, double seconds) {
  return seconds > 0.0 ? static_cast<double>(n) / seconds : 0.0;
}

void print_stats(const Stats& stats, StopReason reason) {
  std::fprintf(stderr,
               "stopped by %s; prompt %lld tokens at %.1f tokens/s, decode %lld tokens at %.1f "
               "tokens/s, KV cache %s\n",
               describe(reason), static_cast<long long>(stats.n_prefill_tokens),
               per_second(stats.n_prefill_tokens, stats.prefill_seconds),
               static_cast<long long>(stats.n_decode_tokens),
               per_second(stats.n_decode_tokens, stats.decode_seconds),
               format_bytes(stats.kv_bytes).c_str());
}

void print_json(const GenerateResult& result, const Stats& stats) {
  const nlohmann::ordered_json object = {{"tokens", result.tokens},
                                         {"stop_reason", describe(result.reason)},
                                         {"stats",
                                          {{"n_prefill_tokens", stats.n_prefill_tokens},
                                           {"prefill_seconds", stats.prefill_seconds},
                                           {"n_decode_tokens", stats.n_decode_tokens},
                                           {"decode_seconds", stats.decode_seconds},
                                           {"kv_bytes", stats.kv_bytes}}}};
  std::printf("%s\n", object.dump().c_str());
}

void run(const RunOptions& options) {
  const std::vector<TokenId> prompt = options.model.token_ids();
  const Model model = options.model.load();
  Session session(model, options.model.session);
  const auto print_token = [&](TokenId token) {
    if (options.json) return true;
    std::printf("%d ", token);
    return std::fflush(stdout) == 0;  // nobody reads on; main() says so
  };
  GenerateOptions generate = options.generate;
  if (model.info().eos && !options.ignore_eos) generate.end_tokens = {*model.info().eos};
  const GenerateResult result = session.generate(prompt, generate, print_token);
  if (options.json) {
    print_json(result, session.stats());
  } else {
    std::printf("\n");
    if (!std::ferror(stdout)) print_stats(session.stats(), result.reason);
  }
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "continue a prompt greedily");
  auto options =
      std::make_shared<RunOptions>();  // shared: lives in the callback, after this returns
  options->model.add_to(*command);
  command->add_option("-n,--predict", options->generate.n_tokens, "new tokens at most (128)")
      ->check(at_least(0));
  command->add_flag("--ignore-eos", options->ignore_eos, "go on past the end-of-text token");
  command->add_flag("--json", options->json, "one JSON object with tokens and statistics");
  command->callback([options] { run(*options); });
}

}  // namespace sluice::cli
