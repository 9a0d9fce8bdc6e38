// sluice_c.h: sessions, tokens in and tokens out.
// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace sluice::c_api {
namespace {

std::span<const TokenId> tokens_at(const int32_t* tokens, size_t n, const char* what) {
  return {require_array(tokens, n, what), n};
}

GenerateOptions make_options(const OpenModel& open, const sluice_generate_options& o) {
  GenerateOptions options{.n_tokens = o.n_tokens};
  if (o.n_tokens < 0) {
    throw Error(Errc::bad_request, cat("n_tokens is ", o.n_tokens, ", expected 0 or more"));
  }
  if (o.stops_at_end) options.end_tokens = open.text().end_tokens();
  if (o.choose) {
    options.choose = [o](std::span<const float> logits) {
      return o.choose(logits.data(), logits.size(), o.user);
    };
  }
  return options;
}

int stop_of(StopReason reason) {
  switch (reason) {
    case StopReason::length:
      return SLUICE_STOP_LENGTH;
    case StopReason::end_of_text:
      return SLUICE_STOP_END_OF_TEXT;
    case StopReason::context_full:
      return SLUICE_STOP_CONTEXT_FULL;
    case StopReason::callback:
    case StopReason::cancelled:
    case StopReason::deadline:
    case StopReason::failed:  // these three are an engine's
      break;
  }
  return SLUICE_STOP_CALLBACK;
}

}  // namespace
}  // namespace sluice::c_api

using namespace sluice::c_api;  // NOLINT(google-build-using-namespace): the names below are C's

sluice_session* sluice_session_new(const sluice_model* model,
                                   const sluice_session_options* options) {
  return guarded_pointer([&] {
    const auto& open = require(model, "sluice_session_new: model").open;
    sluice::Session session(open->model(), read(options));
    return std::make_unique<sluice_session>(
               sluice_session{.open = open, .session = std::move(session)})
        .release();
  });
}

void sluice_session_free(sluice_session* session) {
  free_unused(session, "session is in use, and not freed: free it when its function has returned");
}

int sluice_session_append(sluice_session* session, const int32_t* tokens, size_t n_tokens,
                          sluice_on_logits on_logits, void* user) {
  return guarded([&] {
    require(session, "sluice_session_append: session");
    const InUse in_use(session->is_used, "session");
    sluice::Session::OnLogits hear;
    if (on_logits) {
      hear = [&](int pos, std::span<const float> logits) {
        on_logits(pos, logits.data(), logits.size(), user);
      };
    }
    session->session.append(tokens_at(tokens, n_tokens, "sluice_session_append: tokens"), hear);
    return SLUICE_OK;
  });
}

int sluice_session_generate(sluice_session* session, const int32_t* prompt, size_t n_prompt,
                            const sluice_generate_options* options, int* reason) {
  return guarded([&] {
    require(session, "sluice_session_generate: session");
    const auto tokens = tokens_at(prompt, n_prompt, "sluice_session_generate: prompt");
    const InUse in_use(session->is_used, "session");
    const sluice_generate_options o = read(options);
    std::function<bool(sluice::TokenId)> hear;
    if (o.on_token) hear = [&](sluice::TokenId token) { return o.on_token(token, o.user) != 0; };
    const auto result = session->session.generate(tokens, make_options(*session->open, o), hear);
    if (reason) *reason = stop_of(result.reason);
    return SLUICE_OK;
  });
}

int sluice_session_truncate(sluice_session* session, int32_t n_tokens) {
  return guarded([&] {
    require(session, "sluice_session_truncate: session");
    const InUse in_use(session->is_used, "session");
    session->session.truncate(n_tokens);
    return SLUICE_OK;
  });
}

int32_t sluice_session_n_tokens(const sluice_session* session) {
  return session ? session->session.n_tokens() : -1;
}

int32_t sluice_session_n_ctx(const sluice_session* session) {
  return session ? session->session.n_ctx() : -1;
}

int sluice_session_stats(const sluice_session* session, sluice_stats* stats, size_t size) {
  return guarded([&] {
    const auto& asked = require(session, "sluice_session_stats: session").session;
    require(stats, "sluice_session_stats: stats");
    hand_over(make_stats(asked.stats(), asked.placement()), stats, size);
    return SLUICE_OK;
  });
}
