// See generation_fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/generation_fields.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampler/parameters.h"
#include "server/api_error.h"

namespace sluice::server {
namespace {

template <typename T>
void read_parameter(const Fields& fields, const std::string& name, const sampler::Parameter<T>& p,
                    sampler::SamplerOptions& to) {
  if (const std::optional<double> value = fields.number(name)) {
    const bool is_whole = std::is_floating_point_v<T> || *value == std::floor(*value);
    const bool fits = std::abs(*value) <= static_cast<double>(std::numeric_limits<T>::max());
    if (!is_whole || !fits || !p.allows(static_cast<T>(*value))) {
      fields.fail(name, std::string(p.expected));
    }
    to.*p.member = static_cast<T>(*value);
  }
}

// Larger numbers, which other servers take, are folded into our range.
std::optional<uint32_t> read_seed(const Fields& fields) {
  const Json* value = fields.find("seed");
  if (!value) return std::nullopt;
  if (!value->is_number_integer()) fields.fail("seed", "a whole number; -1 draws one");
  const auto seed = value->get<int64_t>();
  const bool fits = seed >= -1 && seed <= int64_t{sampler::kRandomSeed};
  return static_cast<uint32_t>(fits ? seed : seed & 0x7FFFFFFF);
}

float bias_of(const Fields& fields, const Json& value) {
  if (value == false) return -INFINITY;  // as llama.cpp's server has it
  if (!value.is_number() || !(std::abs(value.get<double>()) <= sampler::kMostFloat)) {
    fields.fail("logit_bias", "token ids with numbers, such as {\"15043\": -100}");
  }
  return value.get<float>();
}

TokenId bias_token(const Fields& fields, const std::string& text) {
  TokenId id = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error != std::errc() || stop != end) {
    fields.fail("logit_bias", "token ids with numbers, such as {\"15043\": -100}");
  }
  return id;
}

// {"15043": -100}, or [[15043, -100], [15044, false]]
void read_biases(const Fields& fields, sampler::SamplerOptions& to) {
  const Json* biases = fields.find("logit_bias");
  if (!biases) return;
  if (biases->is_object()) {
    for (const auto& [token, bias] : biases->items()) {
      to.logit_bias.push_back({bias_token(fields, token), bias_of(fields, bias)});
    }
    return;
  }
  if (!biases->is_array()) fields.fail("logit_bias", "an object of token ids and numbers");
  for (const Json& pair : *biases) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() || pair[0] < 0 ||
        pair[0] > INT32_MAX) {
      fields.fail("logit_bias", "pairs of a token id and a number");
    }
    to.logit_bias.push_back({pair[0].get<TokenId>(), bias_of(fields, pair[1])});
  }
}

Constraint read_response_format(const Fields& fields) {
  const Json* format = fields.object("response_format");
  if (!format) return {};
  const Fields inside(*format, fields.path("response_format"));
  const std::string type = inside.required_string("type");
  if (type == "text") return {};
  // llama.cpp's server takes a schema here as well.
  if (type == "json_object") {
    const Json* schema = inside.object("schema");
    if (!schema) return {.kind = Constraint::Kind::json_object};
    return {.kind = Constraint::Kind::json_schema, .text = dump(*schema)};
  }
  if (type != "json_schema") inside.fail("type", "text, json_object or json_schema");
  const Json* outer = inside.object("json_schema");
  if (!outer) inside.fail("json_schema", "an object with a schema");
  const Fields named(*outer, inside.path("json_schema"));
  const Json* schema = named.object("schema");
  if (!schema) named.fail("schema", "a JSON schema");
  return {.kind = Constraint::Kind::json_schema, .text = dump(*schema)};
}

// Chat: a flag, and top_logprobs. Completions: a number.
std::optional<int> read_logprobs(const Fields& fields) {
  const Json* wanted = fields.find("logprobs");
  if (wanted && wanted->is_number()) return fields.integer("logprobs", 0, kMostLogprobs);
  const bool is_wanted = fields.boolean("logprobs").value_or(false);
  const std::optional<int> n_top = fields.integer("top_logprobs", 0, kMostLogprobs);
  if (n_top && *n_top > 0 && !is_wanted) {
    throw bad_request(fields.path("top_logprobs"), "'top_logprobs' needs 'logprobs' to be true");
  }
  if (is_wanted) return n_top.value_or(0);
  const std::optional<int> n_probs = fields.integer("n_probs", 0, kMostLogprobs);
  return n_probs && *n_probs > 0 ? n_probs : std::nullopt;
}

}  // namespace

void read_sampling(const Fields& fields, GenerationFields& to) {
  for (const auto& p : sampler::kFloatParameters) {
    read_parameter(fields, std::string(p.name), p, to.sampling);
  }
  for (const auto& p : sampler::kIntParameters) {
    if (p.name != "n_probs") read_parameter(fields, std::string(p.name), p, to.sampling);
  }
  read_parameter(fields, "temperature", sampler::kFloatParameters[0], to.sampling);
  to.sampling.seed = read_seed(fields);
  read_biases(fields, to.sampling);
  to.dry_breakers = fields.strings("dry_sequence_breakers");
  to.sampling.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  std::string stages;
  for (const std::string& stage : fields.strings("samplers")) {
    stages += (stages.empty() ? "" : ";") + stage;
  }
  if (!stages.empty()) to.sampling.stages = sampler::parse_stage_names(stages);
}

void read_stops(const Fields& fields, const std::string& name, GenerationFields& to) {
  to.stops = fields.strings(name);
  if (to.stops.size() > kMostStops) fields.fail(name, cat(kMostStops, " texts at most"));
}

void read_constraint(const Fields& fields, GenerationFields& to) {
  to.constraint = read_response_format(fields);
  const std::optional<std::string> grammar = fields.string("grammar");
  const Json* schema = fields.find("json_schema");
  const bool has_grammar = grammar && !grammar->empty();
  if (static_cast<bool>(to.constraint) + has_grammar + (schema != nullptr) > 1) {
    throw bad_request(has_grammar ? "grammar" : "json_schema",
                      "there are several constraints; expected one of response_format, "
                      "json_schema and grammar");
  }
  if (has_grammar) to.constraint = {.kind = Constraint::Kind::gbnf, .text = *grammar};
  if (schema) to.constraint = {.kind = Constraint::Kind::json_schema, .text = dump(*schema)};
}

GenerationFields read_openai_generation(const Fields& fields) {
  GenerationFields to;
  read_sampling(fields, to);
  read_stops(fields, "stop", to);
  read_constraint(fields, to);
  for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    if (const std::optional<int> n = fields.integer(name, -1)) to.n_tokens = *n;
  }
  to.n_choices = fields.integer("n", 1, kMostChoices).value_or(1);
  to.n_top_logprobs = read_logprobs(fields);
  to.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    const Fields inside(*options, fields.path("stream_options"));
    to.include_usage = inside.boolean("include_usage").value_or(false);
  }
  if (const std::optional<double> limit = fields.number("timeout")) {
    if (!(*limit > 0.0)) fields.fail("timeout", "seconds, above 0");
    to.limit_seconds = *limit;
  }
  return to;
}

}  // namespace sluice::server
