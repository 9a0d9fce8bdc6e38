// See live_request.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/serving/live_request.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/step/finite_logits.h"

namespace sluice::engine {
namespace {

double seconds_between(LiveRequest::Clock::time_point from, LiveRequest::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

LiveRequest::LiveRequest(uint64_t id, Request request)
    : id_(id),
      request_(std::move(request)),
      text_(std::move(request_.prompt)),
      n_prompt_(static_cast<int>(text_.size())),
      submitted_(Clock::now()) {}

int LiveRequest::n_to_point() const {
  const auto next = std::ranges::upper_bound(request_.keep_at, n_done);
  return next == request_.keep_at.end() ? 0 : *next - n_done;
}

int LiveRequest::n_asked() const {
  return request_.keep_at.empty() ? n_prompt_ : request_.keep_at.back();
}

std::optional<StopReason> LiveRequest::interrupted(Clock::time_point now) const {
  if (is_cancelled_) return StopReason::cancelled;
  if (now >= request_.deadline) return StopReason::deadline;
  return std::nullopt;
}

void LiveRequest::set_prompt(std::vector<TokenId> tokens) {
  text_ = std::move(tokens);
  n_prompt_ = static_cast<int>(text_.size());
}

void LiveRequest::start(Clock::time_point now) {
  if (!started_) started_ = now;
}

template <typename Call>
void LiveRequest::guarded(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    error_ = e;
  } catch (const std::exception& e) {
    error_ = Error(Errc::bad_request, cat("a callback of the request failed: ", e.what()));
  } catch (...) {
    error_ = Error(Errc::bad_request, "a callback of the request failed");
  }
}

void LiveRequest::see_logits(std::span<const float> logits, const std::string& origin) {
  guarded([&] {
    require_finite_logits(origin, static_cast<int>(text_.size()) - 1, logits);
    next_ = request_.choose(logits);
    if (*next_ >= 0 && *next_ < std::ssize(logits)) return;
    throw Error(Errc::bad_request,
                cat("token id ", *next_, " was chosen; expected 0 to ", std::ssize(logits) - 1));
  });
}

void LiveRequest::see_best(TokenId token, bool is_finite, const std::string& origin) {
  guarded([&] {
    if (!is_finite) refuse_logits(origin, static_cast<int>(text_.size()) - 1);
    next_ = token;
  });
}

std::optional<StopReason> LiveRequest::after_step(int n_ctx, Clock::time_point now) {
  if (!error_ && n_new() == 0 && request_.on_prompt) {
    guarded([&] { request_.on_prompt(n_done, n_prompt_); });
  }
  if (error_) return StopReason::failed;
  if (const auto reason = interrupted(now)) return reason;
  if (n_pending() > 0) return std::nullopt;
  if (!first_) first_ = now;
  if (!wants_token()) return StopReason::length;

  const TokenId token = *std::exchange(next_, std::nullopt);
  if (std::ranges::find(request_.end_tokens, token) != request_.end_tokens.end()) {
    return StopReason::end_of_text;
  }
  text_.push_back(token);
  bool goes_on = true;
  if (request_.on_token) guarded([&] { goes_on = request_.on_token(token); });
  if (error_) return StopReason::failed;
  if (n_done == n_ctx) return StopReason::context_full;
  if (!goes_on) return StopReason::callback;
  if (n_new() == request_.n_tokens) return StopReason::length;
  return std::nullopt;
}

void LiveRequest::end(StopReason reason, Clock::time_point now) {
  RequestEnd end{.reason = reason,
                 .error = error_,
                 .n_prompt = n_prompt_,
                 .n_reused = n_reused,
                 .n_new = n_new()};
  end.queue_seconds = seconds_between(submitted_, started_.value_or(now));
  if (started_) end.prompt_seconds = seconds_between(*started_, first_.value_or(now));
  if (first_) end.decode_seconds = seconds_between(*first_, now);
  if (request_.on_end) guarded([&] { request_.on_end(end); });
}

}  // namespace sluice::engine
