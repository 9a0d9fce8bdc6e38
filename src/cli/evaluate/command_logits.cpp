// sluice logits: the log-probabilities of what may follow each token of a prompt, so that people
// and tests can compare engines.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/command.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/model_options.h"

namespace sluice::cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  int top = 10;
  bool all = false;
  bool json = false;
};

struct Candidate {
  TokenId id;
  double logprob;  // natural log
};

// The n most probable tokens, best first, ties by id.
std::vector<Candidate> best(std::span<const float> logits, size_t n) {
  const double peak = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float l : logits) sum += std::exp(l - peak);
  const double log_sum = peak + std::log(sum);

  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto by_rank = [&](TokenId a, TokenId b) {
    const float la = logits[static_cast<size_t>(a)];
    const float lb = logits[static_cast<size_t>(b)];
    return la != lb ? la > lb : a < b;
  };
  n = std::min(n, ids.size());
  std::ranges::partial_sort(ids, ids.begin() + static_cast<std::ptrdiff_t>(n), by_rank);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < n; ++i) {
    candidates.push_back({ids[i], logits[static_cast<size_t>(ids[i])] - log_sum});
  }
  return candidates;
}

void print_json(int pos, TokenId token, const std::vector<Candidate>& candidates) {
  nlohmann::json top = nlohmann::json::array();
  for (const Candidate& c : candidates) top.push_back({c.id, c.logprob});
  const nlohmann::ordered_json object = {{"pos", pos}, {"token", token}, {"top", std::move(top)}};
  std::printf("%s%s", pos == 0 ? "[" : ",\n", object.dump().c_str());
}

void print_text(int pos, TokenId token, const std::vector<Candidate>& candidates) {
  if (pos == 0) std::printf("  pos    token   next:logprob, best first\n");
  std::printf("%5d %8d ", pos, token);
  for (const Candidate& c : candidates) std::printf("  %d:%.4f", c.id, c.logprob);
  std::printf("\n");
}

void run(const LogitsOptions& options) {
  const std::vector<TokenId> tokens = options.model.token_ids();
  const Model model = options.model.load();
  Session session = open_session(model, options.model.session);
  options.model.warn_of_context(model);
  const auto n = static_cast<size_t>(options.all ? model.info().n_vocab : options.top);
  bool has_printed = false;
  const auto print = [&](int pos, std::span<const float> logits) {
    has_printed = true;
    const auto candidates = best(logits, n);
    const TokenId token = tokens[static_cast<size_t>(pos)];
    options.json ? print_json(pos, token, candidates) : print_text(pos, token, candidates);
  };
  try {
    session.append(tokens, print);
  } catch (...) {
    if (options.json && has_printed) std::printf("]\n");  // what came before the error is sound
    throw;
  }
  if (options.json) std::printf("]\n");
}

}  // namespace

void add_logits(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("logits", "log-probabilities after each token of a prompt");
  const auto options = flags_for<LogitsOptions>(*command, run);
  options->model.add_to(*command);
  options->model.add_tokens_to(*command)->required();
  auto* top = command->add_option("--top", options->top, "candidates at each position (10)")
                  ->transform(at_least(1));
  command->add_flag("--all", options->all, "the whole vocabulary at each position")->excludes(top);
  command->add_flag("--json", options->json, "one JSON array, an object for each position");
}

}  // namespace sluice::cli
