// The flags that say how tokens are chosen: one for each sampling parameter, bias, order of stages,
// grammar. What the user leaves open is filled in by the model file, then by the defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/text_model.h"
#include "sampler/options.h"
#include "text/grammar/matcher.h"

namespace CLI {
class App;
}

namespace sluice::cli {

struct SamplingFlags {
  sampler::SamplerOptions user;
  std::vector<std::string> biases;        // "15043+1.5", "15043-inf"
  std::vector<std::string> dry_breakers;  // texts; none given: the defaults
  std::string stages;                     // "top_k;top_p;temperature"
  std::optional<int64_t> seed;            // -1: drawn
  std::optional<std::string> grammar;     // GBNF
  std::optional<std::string> grammar_file;
  std::optional<std::string> json_schema;  // JSON text, or "@file"

  // Must outlive the parse.
  void add_to(CLI::App& command);

  bool has_grammar() const { return grammar || grammar_file || json_schema; }

  // The user's wishes, then the model's, then the defaults; a seed is drawn where none was given.
  // Throws Errc::bad_request for what makes no sense.
  sampler::SamplerOptions resolve(const chat::TextModel& model) const;

  // What the answer must match; null where nothing was asked for.
  std::unique_ptr<text::GrammarMatcher> make_matcher(const chat::TextModel& model) const;
};

}  // namespace sluice::cli
