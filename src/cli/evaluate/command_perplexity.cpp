// sluice perplexity: how well a model predicts a text, in llama.cpp's definition: the text is cut
// into chunks of the context, each is computed by itself, and its second half is scored.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "chat/text_model.h"
#include "cli/command.h"
#include "cli/experts/expert_watch.h"
#include "cli/files/json_text.h"
#include "cli/files/text_file.h"
#include "cli/flags/model_options.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  ExpertWatchFlags experts;
  std::string file;
  bool json = false;
};

// Mean of -log p over scored tokens, and how sure it is.
class Score {
 public:
  void add(std::span<const float> logits, TokenId next) {
    const double peak = *std::ranges::max_element(logits);
    double sum = 0.0;
    for (const float l : logits) sum += std::exp(l - peak);
    const double nll = peak + std::log(sum) - logits[static_cast<size_t>(next)];
    sum_ += nll;
    sum_squares_ += nll * nll;
    ++n_;
  }

  int64_t n() const { return n_; }
  double perplexity() const { return std::exp(sum_ / static_cast<double>(n_)); }
  // One standard error, carried through the exponential.
  double error() const {
    if (n_ < 2) return 0.0;
    const auto n = static_cast<double>(n_);
    const double mean = sum_ / n;
    const double variance = std::max(0.0, sum_squares_ / n - mean * mean);
    return std::sqrt(variance / (n - 1.0)) * perplexity();
  }

 private:
  double sum_ = 0.0;
  double sum_squares_ = 0.0;
  int64_t n_ = 0;
};

void run(const PerplexityOptions& options) {
  const chat::TextModel text_model(options.model.file(), chat::TextModel::Use::plain_text);
  for (const std::string& warning : text_model.warnings()) print_warning(warning);
  const std::string text = read_text_file(options.file);
  const text::Tokenizer& tokenizer = text_model.tokenizer();
  const std::vector<TokenId> tokens = text_model.encode_plain(text);
  SessionOptions session_options = options.model.session;
  ExpertWatch watch(options.experts, options.model.file(), session_options);
  const Model model = options.model.load();
  Session session = open_session(model, session_options);
  options.model.warn_of_context(model);
  const auto n_ctx = static_cast<size_t>(session.n_ctx());
  const size_t n_chunks = tokens.size() / n_ctx;
  if (n_chunks == 0 || n_ctx < 4) {
    throw Error(Errc::bad_request,
                cat(options.file, ": ", tokens.size(), " tokens in chunks of ", n_ctx,
                    "; expected a longer text, or a smaller context (-c, at least 4)"));
  }
  const bool bos_in_each = tokenizer.adds_bos() && tokenizer.bos();
  const size_t first = n_ctx / 2;  // what comes before is context only
  Score score;
  ProgressBar bar("scoring", "tokens");
  for (size_t c = 0; c < n_chunks; ++c) {
    std::vector<TokenId> chunk(tokens.begin() + static_cast<std::ptrdiff_t>(c * n_ctx),
                               tokens.begin() + static_cast<std::ptrdiff_t>((c + 1) * n_ctx));
    const std::vector<TokenId> targets = chunk;
    if (bos_in_each) chunk[0] = *tokenizer.bos();
    session.truncate(0);
    PromptOptions prompt;
    prompt.logits_from = static_cast<int>(first);
    prompt.progress = [&](int n_done, int) {
      bar.update(c * n_ctx + static_cast<size_t>(n_done), n_chunks * n_ctx);
    };
    const auto add = [&](int pos, std::span<const float> logits) {
      const auto at = static_cast<size_t>(pos);
      if (at + 1 < n_ctx) score.add(logits, targets[at + 1]);
    };
    session.append(chunk, add, prompt);
  }
  if (options.json) {
    std::printf("%s\n", dump({{"perplexity", score.perplexity()},
                              {"error", score.error()},
                              {"n_scored", score.n()},
                              {"n_chunks", n_chunks},
                              {"n_ctx", n_ctx}})
                            .c_str());
  } else {
    std::printf("perplexity %.4f +/- %.4f (%lld tokens in %zu chunks of %zu)\n", score.perplexity(),
                score.error(), static_cast<long long>(score.n()), n_chunks, n_ctx);
  }
  watch.finish(stderr, session);
}

}  // namespace

void add_perplexity(CLI::App& app) {
  CLI::App* command = app.add_subcommand("perplexity", "how well a model predicts a text file");
  const auto options = flags_for<PerplexityOptions>(*command, run);
  options->model.session.n_ctx = 512;
  options->model.add_to(*command);
  options->experts.add_to(*command);
  command->add_option("-f,--file", options->file, "text to score; - is standard input")->required();
  command->add_flag("--json", options->json, "one JSON object");
}

}  // namespace sluice::cli
