// See openai_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/openai_parts.h"

#include <algorithm>
#include <random>

#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

Json scored(const ModelService& service, const ScoredToken& token) {
  const std::string bytes = service.text().tokenizer().piece(token.id, /*render_special=*/true);
  Json numbers = Json::array();
  for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
  // The least that JSON can show of a token that cannot come.
  return {{"token", bytes}, {"logprob", std::max(token.logprob, -9999.0f)}, {"bytes", numbers}};
}

double rate(int n, double seconds) { return seconds > 0.0 ? n / seconds : 0.0; }

}  // namespace

std::string make_id(const std::string& prefix) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  std::string id = prefix;
  for (int i = 0; i < 4; ++i) {
    uint32_t bits = random();
    for (int j = 0; j < 6; ++j, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

const char* finish_reason(Finish finish) {
  if (finish == Finish::length) return "length";
  return finish == Finish::tool_calls ? "tool_calls" : "stop";
}

Json openai_usage(const Usage& usage) {
  return {{"prompt_tokens", usage.n_prompt},
          {"completion_tokens", usage.n_new},
          {"total_tokens", usage.n_prompt + usage.n_new},
          {"prompt_tokens_details", {{"cached_tokens", usage.n_reused}}}};
}

Json timings(const Usage& usage) {
  const int n_computed = usage.n_prompt - usage.n_reused;
  const int n_timed = std::max(usage.n_new - 1, 0);  // the first comes with the prompt
  return {{"prompt_n", n_computed},
          {"prompt_ms", usage.prompt_seconds * 1e3},
          {"prompt_per_second", rate(n_computed, usage.prompt_seconds)},
          {"predicted_n", usage.n_new},
          {"predicted_ms", usage.decode_seconds * 1e3},
          {"predicted_per_second", rate(n_timed, usage.decode_seconds)}};
}

Json chat_logprobs(const ModelService& service, const std::vector<TokenLogprobs>& tokens) {
  Json all = Json::array();
  for (const TokenLogprobs& t : tokens) {
    Json entry = scored(service, t.token);
    entry["top_logprobs"] = Json::array();
    for (const ScoredToken& other : t.best) {
      entry["top_logprobs"].push_back(scored(service, other));
    }
    all.push_back(std::move(entry));
  }
  return {{"content", all}};
}

}  // namespace sluice::server
