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

#include "engine/model_stamp.h"
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
  // As save_text() and load_text() (saved_text.h).
  void save(const std::string& path, const ModelStamp& model);
  std::vector<TokenId> load(const std::string& path, const ModelStamp& model);

  int n_tokens() const { return driver_->n_tokens(kSequence); }
  // Of the first n_tokens, how many it can go back to at no cost.
  int kept_tokens(int n_tokens) const { return driver_->kept_tokens(kSequence, n_tokens); }
  int first_of_step() const { return first_; }  // its position; of the step under way
  // Of the newest token; where only the best is known, it is computed once more for all of them.
  bool has_logits() const { return !last_logits_.empty() || best_.has_value(); }
  std::span<const float> last_logits();
  TokenId best_token() const;
  const Stats& stats() const { return stats_; }
  StepDriver& driver() const { return *driver_; }

 private:
  static constexpr SequenceId kSequence{0};

  // Of so many tokens of a prompt, how many the next step takes.
  size_t n_in_step(size_t n_tokens, const PromptOptions& options) const;
  size_t n_to_point(const PromptOptions& options) const;
  void step(std::span<const TokenId> tokens, policy::Phase phase, const StepListener& listener);
  void take_step(std::span<const TokenId> tokens, policy::Phase phase,
                 const StepListener& listener);
  void forget_logits();
  void give_routing(std::span<const TokenId> tokens, policy::Phase phase);
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
