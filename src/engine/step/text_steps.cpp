// See text_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/text_steps.h"

#include <algorithm>
#include <utility>

#include "engine/step/finite_logits.h"
#include "engine/step/saved_text.h"
#include "sampler/greedy.h"

namespace sluice::engine {

TextSteps::TextSteps(std::unique_ptr<StepDriver> driver, std::string origin, OnRouting on_routing)
    : driver_(std::move(driver)), origin_(std::move(origin)), on_routing_(std::move(on_routing)) {
  stats_.kv_bytes = driver_->kv_bytes();
}

bool TextSteps::prefill(std::span<const TokenId> tokens, const OnLogits& on_logits,
                        const PromptOptions& options) {
  const auto n_total = static_cast<int>(tokens.size());
  if (options.progress) options.progress(0, n_total);
  while (!tokens.empty()) {
    if (options.should_stop && options.should_stop()) return false;
    const size_t n = n_in_step(tokens.size(), options);
    const int n_before = n_total - static_cast<int>(tokens.size());
    const int first = n_tokens();
    rows_.clear();
    for (const TokenId token : tokens.first(n)) {
      const int pos = first + static_cast<int>(rows_.size());
      rows_.push_back({token, kSequence, on_logits && pos >= options.logits_from});
    }
    if (n == tokens.size()) rows_.back().wants_logits = true;
    rows_.back().ends_message = n == n_to_point(options);

    StepListener listener;
    listener.on_logits = [&](int64_t row, std::span<const float> logits) {
      const int pos = first + static_cast<int>(row);
      if (on_logits && pos >= options.logits_from) on_logits(pos, logits);
    };
    listener.on_layer = [&](int n_done, int n_layers) {  // a chunk may take seconds
      const auto n_rows = static_cast<int64_t>(n) * n_done / n_layers;
      if (options.progress) options.progress(n_before + static_cast<int>(n_rows), n_total);
    };
    step(tokens.first(n), policy::Phase::prefill, listener);
    ++stats_.n_prefill_steps;
    tokens = tokens.subspan(n);
  }
  return true;
}

size_t TextSteps::n_in_step(size_t n_tokens, const PromptOptions& options) const {
  const size_t most = std::min(n_tokens, static_cast<size_t>(driver_->max_rows()));
  if (!driver_->keeps_points()) return most;
  const size_t n = n_to_point(options);
  return n > 0 ? std::min(most, n) : most;
}

// Tokens to the next point of keep_at; 0: there is none.
size_t TextSteps::n_to_point(const PromptOptions& options) const {
  const auto next = std::ranges::upper_bound(options.keep_at, this->n_tokens());
  return next == options.keep_at.end() ? 0 : static_cast<size_t>(*next - this->n_tokens());
}

void TextSteps::decode(TokenId token, Known known) {
  const bool wants_all = known == Known::all;
  rows_.assign(1, {token, kSequence, wants_all, wants_all ? 0 : 1});
  step({&token, 1}, policy::Phase::decode, {});
}

// The same token at the same place gives the same logits, to the bit.
std::span<const float> TextSteps::last_logits() {
  if (last_logits_.empty() && best_) {
    driver_->truncate(kSequence, n_tokens() - 1);
    best_.reset();
    rows_.assign(1, {last_token_, kSequence, true});
    take_step({&last_token_, 1}, policy::Phase::decode, {});
  }
  return last_logits_;
}

TokenId TextSteps::best_token() const { return best_ ? *best_ : sampler::greedy(last_logits_); }

// Time that callbacks take is not the model's.
template <typename Call>
void TextSteps::untimed(const Call& call) {
  const double start = driver_->seconds();
  call();
  callback_seconds_ += driver_->seconds() - start;
}

// Of rows_, which hold these tokens.
void TextSteps::step(std::span<const TokenId> tokens, policy::Phase phase,
                     const StepListener& listener) {
  take_step(tokens, phase, listener);
  if (on_routing_) give_routing(tokens, phase);
}

void TextSteps::take_step(std::span<const TokenId> tokens, policy::Phase phase,
                          const StepListener& listener) {
  first_ = n_tokens();
  callback_seconds_ = 0.0;
  new_logits_.clear();
  new_best_.reset();
  StepListener inner;
  inner.on_pick = [&](int64_t row, const backend::PickedRow& picked) {
    if (!picked.is_finite) refuse_logits(origin_, first_ + static_cast<int>(row));
    new_best_ = picked.best[0].token;
  };
  inner.on_logits = [&](int64_t row, std::span<const float> logits) {
    untimed([&] {
      require_finite_logits(origin_, first_ + static_cast<int>(row), logits);
      if (row + 1 == std::ssize(rows_)) new_logits_.assign(logits.begin(), logits.end());
      if (listener.on_logits) listener.on_logits(row, logits);
    });
  };
  if (listener.on_layer) {
    inner.on_layer = [&](int n_done, int n_layers) {
      untimed([&] { listener.on_layer(n_done, n_layers); });
    };
  }
  const double start = driver_->seconds();
  driver_->step(rows_, phase, inner);
  std::swap(last_logits_, new_logits_);
  best_ = new_best_;
  last_token_ = tokens.back();

  const double seconds = driver_->seconds() - start - callback_seconds_;
  const bool is_prompt = phase == policy::Phase::prefill;
  (is_prompt ? stats_.n_prefill_tokens : stats_.n_decode_tokens) += std::ssize(tokens);
  (is_prompt ? stats_.prefill_seconds : stats_.decode_seconds) += seconds;
}

void TextSteps::give_routing(std::span<const TokenId> tokens, policy::Phase phase) {
  const RoutingLog& log = driver_->log();
  const size_t n_used = log.routed(LayerId(0)).size() / tokens.size();
  for (size_t r = 0; r < tokens.size(); ++r) {
    routed_experts_.clear();
    routed_weights_.clear();
    for (int layer = 0; layer < log.n_layers(); ++layer) {
      for (const policy::RoutedExpert& routed :
           log.routed(LayerId(layer)).subspan(r * n_used, n_used)) {
        routed_experts_.push_back(routed.expert.value);
        routed_weights_.push_back(routed.weight);
      }
    }
    on_routing_({tokens[r], phase == policy::Phase::prefill, static_cast<int>(n_used),
                 routed_experts_, routed_weights_});
  }
}

void TextSteps::forget_logits() {
  last_logits_.clear();
  best_.reset();
}

void TextSteps::save(const std::string& path, const ModelStamp& model) {
  save_text(path, driver_->text_memory(), kSequence, model);
}

std::vector<TokenId> TextSteps::load(const std::string& path, const ModelStamp& model) {
  try {
    std::vector<TokenId> tokens = load_text(path, driver_->text_memory(), kSequence, model);
    forget_logits();
    return tokens;
  } catch (...) {
    if (n_tokens() == 0) forget_logits();
    throw;
  }
}

void TextSteps::truncate(int n_tokens) {
  if (n_tokens == this->n_tokens()) return;
  driver_->truncate(kSequence, n_tokens);
  forget_logits();
  stats_.n_replayed_tokens = driver_->went_back().n_replayed;
  stats_.n_recomputed_tokens = driver_->went_back().n_computed;
}

}  // namespace sluice::engine
