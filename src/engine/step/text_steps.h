// One text on a driver: prompts in chunks as wide as the driver's steps, then token by token; with
// the logits of the newest token. Whatever is thrown, the text counts only steps that were
// finished.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/step/step_driver.h"
#include "sluice/sluice.h"

namespace sluice::engine {

class TextSteps {
 public:
  enum class Known { all, best };  // of a token's logits

  using OnLogits = Session::OnLogits;
  using OnRouting = std::function<void(const RoutedToken&)>;

  // `origin` names the model in errors; `on_routing` may be empty.
  TextSteps(std::unique_ptr<StepDriver> driver, std::string origin, OnRouting on_routing);

  // Takes in a prompt that the context has room for, max_rows() tokens a step; false where it was
  // stopped before its end. Logits are computed for the last token, and with `on_logits` for those
  // from options.logits_from on.
  bool prefill(std::span<const TokenId> tokens, const OnLogits& on_logits,
               const PromptOptions& options);
  // Appends a token that was chosen by the logits of the one before; of its own either all become
  // known, or the best alone.
  void decode(TokenId token, Known known = Known::all);
  void truncate(int n_tokens);

  int n_tokens() const { return driver_->n_tokens(kSequence); }
  int first_of_step() const { return first_; }  // its position; of the step under way
  // Of the newest token; where only the best is known, it is computed once more for all of them.
  bool has_logits() const { return !last_logits_.empty() || best_.has_value(); }
  std::span<const float> last_logits();
  TokenId best_token() const;
  const Stats& stats() const { return stats_; }
  StepDriver& driver() const { return *driver_; }

 private:
  static constexpr SequenceId kSequence{0};

  void step(std::span<const TokenId> tokens, policy::Phase phase, const StepListener& listener);
  void take_step(std::span<const TokenId> tokens, policy::Phase phase,
                 const StepListener& listener);
  void give_routing(std::span<const TokenId> tokens, policy::Phase phase);
  void require_finite(int pos, std::span<const float> logits) const;
  [[noreturn]] void refuse(int pos) const;
  template <typename Call>
  void untimed(const Call& call);

  std::unique_ptr<StepDriver> driver_;
  std::string origin_;
  OnRouting on_routing_;
  Stats stats_;
  int first_ = 0;
  std::vector<StepRow> rows_;
  std::vector<float> last_logits_, new_logits_;
  std::optional<TokenId> best_, new_best_;  // where that is all that is known
  TokenId last_token_ = 0;
  double callback_seconds_ = 0.0;  // of the step under way
  std::vector<int32_t> routed_experts_;
  std::vector<float> routed_weights_;
};

}  // namespace sluice::engine
