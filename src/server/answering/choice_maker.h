// Makes one answer: chooses its tokens and turns them into text, thinking and calls of tools. The
// engine calls it from its own thread, a token at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "chat/chooser.h"
#include "chat/text_pipe.h"
#include "server/answering/answer_parts.h"
#include "server/answering/answer_plan.h"

namespace sluice::server {

class ChoiceMaker {
 public:
  // index: which of several answers to one prompt; each has a seed of its own, and the first that
  // of `sluice run`. `service` must outlive it.
  ChoiceMaker(const ModelService& service, const AnswerPlan& plan, int index);
  ChoiceMaker(const ChoiceMaker&) = delete;
  ChoiceMaker& operator=(const ChoiceMaker&) = delete;

  // Whether choose() must be asked; else the best token is taken.
  bool chooses() const { return n_top_.has_value() || !chooser_.takes_best(); }
  TokenId choose(std::span<const float> logits);

  // The next token; says whether to go on. take() then has what it added.
  bool push(TokenId token);
  void finish();
  Delta take();

  // How the answer ended; complete once finish() was called.
  Finish finish_of(StopReason reason) const;
  const std::string& stop_text() const { return pipe_.stop_text(); }

 private:
  const ModelService& service_;
  chat::Chooser chooser_;
  std::optional<int> n_top_;
  std::optional<TokenLogprobs> scored_;
  Delta delta_;
  int n_calls_ = 0;
  text::ToolCallSplitter calls_;
  bool takes_calls_;
  chat::TextPipe pipe_;
};

}  // namespace sluice::server
