// See answer_run.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/answering/answer_run.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "server/answering/choice_maker.h"

namespace sluice::server {
namespace {

using Clock = std::chrono::steady_clock;

// The engine takes all but an Error for a mistake of the request; here it is the server's own.
template <typename Call>
auto with_own_faults(const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Errc::cancelled, error.what());
  }
}

class AnswerRun : public std::enable_shared_from_this<AnswerRun> {
 public:
  AnswerRun(const AnswerContext& context, std::shared_ptr<Exchange> exchange, AnswerPlan plan,
            std::unique_ptr<AnswerFormat> format)
      : context_(context),
        exchange_(std::move(exchange)),
        plan_(std::move(plan)),
        format_(std::move(format)),
        choices_(static_cast<size_t>(plan_.how.n_choices)),
        last_tokens_(choices_.size()) {}

  void start() {
    for (int i = 0; i < plan_.how.n_choices; ++i) {
      makers_.push_back(std::make_unique<ChoiceMaker>(context_.service, plan_, i));
    }
    try {
      for (int i = 0; i < plan_.how.n_choices; ++i) {
        ids_.push_back(context_.service.engine().submit(request(i)));
      }
    } catch (...) {
      {
        const std::scoped_lock lock(mutex_);
        is_over_ = true;
      }
      cancel();
      throw;
    }
    exchange_->on_gone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->cancel();
    });
    const std::scoped_lock lock(mutex_);
    begin_stream();
  }

 private:
  void cancel() {
    for (const uint64_t id : ids_) context_.service.engine().cancel(id);
  }

  Request request(int index) {
    const auto self = shared_from_this();
    ChoiceMaker& maker = *makers_[static_cast<size_t>(index)];
    Request request;
    request.prompt = plan_.prompt;
    request.keep_at = context_.service.text().ends_of_messages(plan_.prompt);
    request.n_tokens = plan_.how.n_tokens;
    request.end_tokens = context_.service.text().end_tokens();
    if (maker.chooses()) {
      request.choose = [self, &maker](std::span<const float> logits) {
        return with_own_faults([&] { return maker.choose(logits); });
      };
    }
    request.on_token = [self, index](TokenId token) {
      return with_own_faults([&] { return self->on_token(index, token); });
    };
    request.on_end = [self, index](const RequestEnd& end) { self->on_end(index, end); };
    if (plan_.how.limit_seconds) {
      request.deadline =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                             std::min(*plan_.how.limit_seconds, 1e6)));
    }
    return request;
  }

  bool on_token(int index, TokenId token) {
    const bool goes_on = makers_[static_cast<size_t>(index)]->push(token);
    const std::scoped_lock lock(mutex_);
    if (is_over_) return false;
    count_token(index);
    give(index);
    return goes_on;
  }

  void on_end(int index, const RequestEnd& end) {
    ChoiceMaker& maker = *makers_[static_cast<size_t>(index)];
    maker.finish();
    const std::scoped_lock lock(mutex_);
    if (is_over_) return;
    if (end.error) return fail_by(*end.error);
    if (end.reason == StopReason::cancelled) {
      return fail(ApiError(503, "the server is ending; the answer is not complete"));
    }
    if (end.reason == StopReason::deadline) {
      return fail(ApiError(408, "the answer was not complete within the 'timeout' of its request"));
    }
    give(index);
    Choice& choice = choices_[static_cast<size_t>(index)];
    choice.finish = maker.finish_of(end.reason);
    choice.stop_text = maker.stop_text();
    choice.end = end;
    if (plan_.how.stream) exchange_->write(format_->choice_end(index, choice));
    if (!std::ranges::all_of(choices_, [](const Choice& c) { return c.end.has_value(); })) return;
    is_over_ = true;
    if (plan_.how.stream) {
      exchange_->write(format_->end(choices_));
      exchange_->end_stream();
    } else {
      exchange_->send({.body = dump(format_->whole(choices_))});
    }
  }

  void count_token(int index) {
    const Clock::time_point now = Clock::now();
    Clock::time_point& last = last_tokens_[static_cast<size_t>(index)];
    const bool is_first = last == Clock::time_point();
    const double seconds = std::chrono::duration<double>(now - (is_first ? start_ : last)).count();
    (is_first ? context_.metrics.first_token : context_.metrics.token_gap).observe(seconds);
    last = now;
  }

  // Hands over what the last token added.
  void give(int index) {
    Delta delta = makers_[static_cast<size_t>(index)]->take();
    if (delta.empty()) return;
    if (plan_.how.stream) {
      begin_stream();
      exchange_->write(format_->delta(index, delta));
    }
    Choice& choice = choices_[static_cast<size_t>(index)];
    choice.text += delta.text;
    choice.thinking += delta.thinking;
    std::ranges::move(delta.calls, std::back_inserter(choice.calls));
    std::ranges::move(delta.logprobs, std::back_inserter(choice.logprobs));
  }

  void fail_by(const Error& error) {
    const ApiError told = to_api_error(error);
    if (told.status() >= 500) context_.log(cat("fault: ", error.what()));
    fail(told);
  }

  void fail(const ApiError& error) {
    is_over_ = true;
    if (has_begun_) {
      exchange_->write(format_->failure(error));
      exchange_->end_stream();
    } else {
      exchange_->send(error_response(api_of(exchange_->request().path), error));
    }
  }

  void begin_stream() {
    if (!plan_.how.stream || is_over_ || std::exchange(has_begun_, true)) return;
    exchange_->begin_stream({.content_type = format_->content_type(),
                             .body = format_->begin(),
                             .headers = {{"Cache-Control", "no-cache"}}});
  }

  AnswerContext context_;
  Clock::time_point start_ = Clock::now();
  std::shared_ptr<Exchange> exchange_;
  AnswerPlan plan_;
  std::unique_ptr<AnswerFormat> format_;
  std::vector<std::unique_ptr<ChoiceMaker>> makers_;
  std::vector<uint64_t> ids_;  // written by start() alone, before anyone may cancel

  std::mutex mutex_;  // for what follows: choices may be made by several calls of the engine
  std::vector<Choice> choices_;
  std::vector<Clock::time_point> last_tokens_;
  bool has_begun_ = false;
  bool is_over_ = false;
};

}  // namespace

void run_answer(const AnswerContext& context, std::shared_ptr<Exchange> exchange, AnswerPlan plan,
                std::unique_ptr<AnswerFormat> format) {
  std::make_shared<AnswerRun>(context, std::move(exchange), std::move(plan), std::move(format))
      ->start();
}

Usage usage_of(const std::vector<Choice>& choices) {
  Usage usage;
  for (const Choice& choice : choices) {
    if (!choice.end) continue;
    usage.n_prompt = choice.end->n_prompt;
    usage.n_reused = std::max(usage.n_reused, choice.end->n_reused);
    usage.n_new += choice.end->n_new;
    usage.prompt_seconds += choice.end->prompt_seconds;
    usage.decode_seconds = std::max(usage.decode_seconds, choice.end->decode_seconds);
  }
  return usage;
}

}  // namespace sluice::server
