// The fields that all requests for text share, whatever the API calls them: how tokens are chosen,
// what ends an answer, what it must match. Pure: JSON in, struct out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sampler/options.h"
#include "server/fields.h"

namespace sluice::server {

// What an answer must match.
struct Constraint {
  enum class Kind { none, json_object, json_schema, gbnf };
  Kind kind = Kind::none;
  std::string text = {};  // the schema or the grammar

  explicit operator bool() const { return kind != Kind::none; }
  bool operator<(const Constraint& other) const {
    return std::tie(kind, text) < std::tie(other.kind, other.text);
  }
};

struct GenerationFields {
  sampler::SamplerOptions sampling;
  std::vector<std::string> dry_breakers;
  int n_tokens = -1;  // at most; -1: as many as the context holds
  std::vector<std::string> stops;
  int n_choices = 1;
  Constraint constraint;
  std::optional<int> n_top_logprobs;  // set: log-probabilities are wanted, with so many others
  bool stream = false;
  bool include_usage = false;           // in a stream
  std::optional<double> limit_seconds;  // for the whole answer
};

inline constexpr int kMostChoices = 8;
inline constexpr int kMostLogprobs = 20;
inline constexpr int kMostStops = 16;

// The sampling parameters by their names in sampler/parameters.h, `temperature`, `seed`,
// `logit_bias` and the rest. Throws ApiError.
void read_sampling(const Fields& fields, GenerationFields& to);

// `stop`, `stream` and the constraints `response_format`, `grammar` and `json_schema`, of which one
// at most may be given.
void read_stops(const Fields& fields, const std::string& name, GenerationFields& to);
void read_constraint(const Fields& fields, GenerationFields& to);

// All of that, and what OpenAI's two endpoints for text share.
GenerationFields read_openai_generation(const Fields& fields);

}  // namespace sluice::server
