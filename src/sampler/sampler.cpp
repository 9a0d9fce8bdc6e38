// See sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/sampler.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "sampler/bounded.h"
#include "sampler/lanes.h"
#include "sampler/temperature.h"
#include "sampler/truncation.h"
#include "sampler/xtc.h"

namespace sluice::sampler {
namespace {

SamplerOptions resolve_and_check(const SamplerOptions& options, int n_vocab) {
  CHECK(n_vocab > 0);
  validate(options, n_vocab);
  SamplerOptions all = resolve(options);
  CHECK(*all.seed != kRandomSeed);
  return all;
}

Penalties penalties_of(const SamplerOptions& o) {
  return {*o.repeat_penalty, *o.frequency_penalty, *o.presence_penalty};
}

// Whether the stage changes anything for these options.
bool is_active(Stage stage, const SamplerOptions& o, int n_vocab) {
  switch (stage) {
    case Stage::penalties:
      return *o.repeat_last_n != 0 && !penalties_of(o).are_off();
    case Stage::dry:
      return *o.dry_last_n != 0 && *o.dry_multiplier > 0.0f;
    case Stage::top_n_sigma:
      return *o.top_n_sigma > 0.0f;
    case Stage::top_k:
      return *o.top_k > 0 && *o.top_k < n_vocab;
    case Stage::typical_p:
      return *o.typical_p < 1.0f;
    case Stage::top_p:
      return *o.top_p < 1.0f;
    case Stage::min_p:
      return *o.min_p > 0.0f;
    case Stage::xtc:
      return *o.xtc_probability > 0.0f && *o.xtc_threshold <= 0.5f;
    case Stage::temperature:
      return *o.temp != 1.0f || *o.dynatemp_range > 0.0f;
  }
  CHECK(false);
}

// Mirostat has no other stage but temperature. Where the best token is taken, only what changes
// the order of logits matters.
std::vector<Stage> active_stages(const SamplerOptions& o, int n_vocab) {
  std::vector<Stage> chain;
  for (const Stage stage : *o.stages) {
    const bool reorders = stage == Stage::penalties || stage == Stage::dry;
    if (*o.mirostat > 0 || (*o.temp <= 0.0f && !reorders)) continue;
    if (is_active(stage, o, n_vocab)) chain.push_back(stage);
  }
  return chain;
}

std::vector<LogitBias> all_biases(const SamplerOptions& o) {
  std::vector<LogitBias> biases = o.logit_bias;
  for (const TokenId id : o.suppressed) biases.push_back({id, -kInf});
  if (!o.ignore_eos) return biases;
  for (const TokenId id : o.end_of_generation) biases.push_back({id, -kInf});
  return biases;
}

// How far back a chain looks in the text itself; counting over the whole context needs no history.
size_t history_needed(const SamplerOptions& o, const std::vector<Stage>& chain) {
  size_t n = 0;
  for (const Stage stage : chain) {
    if (stage == Stage::dry) n = std::max(n, window_of(*o.dry_last_n));
    if (stage == Stage::penalties && *o.repeat_last_n > 0) {
      n = std::max(n, window_of(*o.repeat_last_n));
    }
  }
  return n;
}

bool contains(const std::vector<Stage>& chain, Stage stage) {
  return std::ranges::find(chain, stage) != chain.end();
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options, int n_vocab)
    : options_(resolve_and_check(options, n_vocab)),
      n_vocab_(static_cast<size_t>(n_vocab)),
      min_keep_(static_cast<size_t>(*options_.min_keep)),
      chain_(active_stages(options_, n_vocab)),
      biases_(all_biases(options_)),
      penalties_(penalties_of(options_)),
      candidates_(n_vocab_),
      history_(history_needed(options_, chain_)),
      counts_(contains(chain_, Stage::penalties) ? n_vocab_ : 0),
      uniform_(*options_.seed),
      xtc_uniform_(seed_for_xtc()) {
  drawn_from_.reserve(n_vocab_);
  if (contains(chain_, Stage::dry)) {
    const DryOptions dry{*options_.dry_multiplier, *options_.dry_base, *options_.dry_allowed_length,
                         window_of(*options_.dry_last_n), *options_.dry_breakers};
    dry_.emplace(dry, n_vocab_);
  }
  if (*options_.mirostat > 0) {
    mirostat_.emplace(*options_.mirostat, *options_.mirostat_tau, *options_.mirostat_eta);
  }
}

uint32_t Sampler::seed_for_xtc() const { return static_cast<uint32_t>(mix64(*options_.seed)); }

void Sampler::reset() {
  history_.clear();
  counts_.clear();
  if (mirostat_) mirostat_->reset();
  uniform_.seed(*options_.seed);
  xtc_uniform_.seed(seed_for_xtc());
  drawn_from_.clear();
  drawn_ = false;
}

void Sampler::accept(TokenId id) {
  CHECK(id >= 0 && static_cast<size_t>(id) < n_vocab_);
  if (contains(chain_, Stage::penalties)) {
    const size_t window = window_of(*options_.repeat_last_n);
    if (history_.size() >= window) counts_.remove(history_.recent(window - 1));
    counts_.add(id);
  }
  history_.push(id);
  if (mirostat_ && drawn_) {
    const auto taken = std::ranges::lower_bound(drawn_from_, id, {}, &Candidate::id);
    const bool known = taken != drawn_from_.end() && taken->id == id && taken->p > 0.0f;
    if (known) mirostat_->observe(taken->p);
  }
  drawn_ = false;
}

TokenId Sampler::sample(std::span<const float> logits, const TokenMask* mask) {
  candidates_.load(logits, mask);
  for (const auto& [id, bias] : biases_) {
    float* logit = candidates_.find(id);
    if (logit == nullptr || *logit == -kInf) continue;
    *logit = bias == -kInf ? -kInf : bounded(static_cast<double>(*logit) + bias);
  }
  if (candidates_.max() == -kInf) fail_empty(logits, mask);

  for (const Stage stage : chain_) apply(stage);
  if (*options_.temp <= 0.0f) {
    candidates_.keep_best(1);
  } else if (mirostat_) {
    temperature(candidates_, *options_.temp);
    mirostat_->truncate(candidates_, n_vocab_);
  }
  return draw();
}

void Sampler::apply(Stage stage) {
  const SamplerOptions& o = options_;
  switch (stage) {
    case Stage::penalties:
      return penalise(candidates_, counts_, penalties_);
    case Stage::dry:
      return dry_->penalise(candidates_, history_);
    case Stage::top_n_sigma:
      return top_n_sigma(candidates_, *o.top_n_sigma, min_keep_);
    case Stage::top_k:
      return top_k(candidates_, *o.top_k);
    case Stage::typical_p:
      return typical_p(candidates_, *o.typical_p, min_keep_);
    case Stage::top_p:
      return top_p(candidates_, *o.top_p, min_keep_);
    case Stage::min_p:
      return min_p(candidates_, *o.min_p, min_keep_);
    case Stage::xtc:
      if (xtc_uniform_() < *o.xtc_probability) xtc(candidates_, *o.xtc_threshold, min_keep_);
      return;
    case Stage::temperature:
      return dynamic_temperature(candidates_, *o.temp, *o.dynatemp_range, *o.dynatemp_exponent);
  }
}

// Token i with probability w_i / sum w: the first whose running sum passes u * sum w. One number u
// a token, whatever the chain left. A weight of 0 never passes anything.
TokenId Sampler::draw() {
  const double total = candidates_.weigh();
  const auto weights = candidates_.weights();
  const auto logits = candidates_.logits();
  drawn_from_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (logits[i] == -kInf) continue;
    const auto p = static_cast<float>(weights[i] / total);
    drawn_from_.push_back({candidates_.id(i), logits[i], p});
  }
  drawn_ = true;

  const double target = uniform_() * total;
  double sum = 0.0;
  size_t taken = 0;  // the last of positive weight, where rounding keeps the sum from the target
  for (size_t i = 0; i < weights.size() && sum <= target; ++i) {
    if (weights[i] == 0.0f) continue;
    sum += weights[i];
    taken = i;
  }
  return candidates_.id(taken);
}

void Sampler::fail_empty(std::span<const float> logits, const TokenMask* mask) const {
  if (max_of(logits) == -kInf) {
    throw Error(Errc::bad_file, cat("the model computed -inf as the logit of all ", logits.size(),
                                    " tokens; expected numbers; check the model file"));
  }
  throw Error(Errc::bad_request,
              cat("no token may follow: ", mask != nullptr ? "the grammar, " : "",
                  "logit bias, suppressed tokens and ignore_eos rule out all ", logits.size(),
                  "; expected one at least"));
}

std::vector<Candidate> Sampler::best_candidates(size_t n) const {
  std::vector<Candidate> best(std::min(n, drawn_from_.size()));
  std::ranges::partial_sort_copy(drawn_from_, best, [](const Candidate& a, const Candidate& b) {
    return a.p > b.p || (a.p == b.p && a.id < b.id);
  });
  return best;
}
}  // namespace sluice::sampler
