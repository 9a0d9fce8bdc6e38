// A request between submit() and its end: its text, how far it has come, and what its callbacks
// say. What they throw ends the request, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>

#include "base/ids.h"
#include "sluice/engine.h"

namespace sluice::engine {

class LiveRequest {
 public:
  using Clock = std::chrono::steady_clock;

  LiveRequest(uint64_t id, Request request);

  uint64_t id() const { return id_; }
  const std::vector<TokenId>& text() const { return text_; }  // the prompt and what follows it
  int n_prompt() const { return n_prompt_; }
  int n_new() const { return static_cast<int>(text_.size()) - n_prompt_; }
  int n_pending() const { return static_cast<int>(text_.size()) - n_done; }
  // Its next step takes in tokens of a prompt, or those that a pause made it forget.
  bool is_prompt() const { return n_new() == 0 || n_pending() > 1; }
  int n_to_point() const;  // tokens to the next point of keep_at; 0: there is none
  int n_asked() const;     // of the prompt, up to the end of its last message
  bool wants_token() const { return request_.n_tokens != 0; }
  const std::string& save_to() const { return request_.save_to; }
  const std::string& restore_from() const { return request_.restore_from; }
  bool wants_logits() const { return wants_token() && static_cast<bool>(request_.choose); }

  // Any thread; the others are those of the thread that takes the steps.
  void cancel() { is_cancelled_ = true; }
  // What ends it from outside.
  std::optional<StopReason> interrupted(Clock::time_point now) const;

  // Of a request that restores a text: what it is.
  void set_prompt(std::vector<TokenId> tokens);
  void start(Clock::time_point now);  // its first step
  // What the newest token led to: its logits, or the best of them.
  void see_logits(std::span<const float> logits, const std::string& origin);
  void see_best(TokenId token, bool is_finite, const std::string& origin);
  // After a step: tells what there is to tell, appends the new token once all others are computed,
  // and says what ends the text there.
  std::optional<StopReason> after_step(int n_ctx, Clock::time_point now);
  void fail(const Error& error) { error_ = error; }
  bool has_failed() const { return error_.has_value(); }
  void end(StopReason reason, Clock::time_point now);

  SequenceId slot{-1};    // where it is computed
  int n_done = 0;         // tokens of the text that are computed there
  int n_reused = 0;       // tokens of the prompt that were found computed
  int64_t last_step = 0;  // in which it had rows

 private:
  template <typename Call>
  void guarded(const Call& call);

  uint64_t id_;
  Request request_;
  std::vector<TokenId> text_;
  int n_prompt_;
  std::optional<TokenId> next_;
  std::optional<Error> error_;
  std::atomic<bool> is_cancelled_ = false;
  Clock::time_point submitted_;
  std::optional<Clock::time_point> started_, first_;
};

}  // namespace sluice::engine
