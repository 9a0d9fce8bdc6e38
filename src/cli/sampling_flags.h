// The flags that say how tokens are chosen: one for each sampling parameter, bias, order of stages,
// grammar. What the user leaves open is filled in by the model file, then by the defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/text_model.h"
#include "sampler/options.h"
#include "text/grammar/matcher.h"

namespace sluice::cli {

struct SamplingFlags {
  sampler::SamplerOptions user;
  std::vector<std::string> biases;        // "15043+1.5", "15043-inf"
  std::vector<std::string> dry_breakers;  // texts; none given: the defaults
  std::string stages;                     // "top_k;top_p;temperature"
  std::string grammar;                    // GBNF
  std::string grammar_file;
  std::string json_schema;  // JSON text, or "@file"

  // Must outlive the parse.
  void add_to(CLI::App& command);

  bool has_grammar() const {
    return !(grammar.empty() && grammar_file.empty() && json_schema.empty());
  }

  // The user's wishes, then the model's, then the defaults; a seed is drawn where none was given.
  // n_vocab: of the model, which may have more rows than the tokenizer has tokens.
  sampler::SamplerOptions resolve(const TextModel& model, int n_vocab) const;

  // What the answer must match; null where nothing was asked for.
  std::unique_ptr<text::GrammarMatcher> make_matcher(const TextModel& model) const;
};

}  // namespace sluice::cli
