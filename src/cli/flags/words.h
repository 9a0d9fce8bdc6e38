// The words of a command line that belong to no flag: a model, a prompt, or both, as in
// `sluice run MODEL "prompt"`, `sluice run MODEL` and `sluice run "prompt"`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

struct ModelAndText {
  std::optional<std::string> model;
  std::optional<std::string> text;
};

// Which word is what. A word without spaces that could name a model is one, known or not, so that a
// mistyped name is never sent to another model as a prompt. The words of a text are joined.
// `has_model`, `has_text`: a flag gave it already. Throws Errc::bad_request for a word too many.
ModelAndText sort_words(const std::vector<std::string>& words, bool has_model, bool has_text);

// Finds the model, or throws as find_model() does, with advice for a word that was no model.
void require_model_word(const std::string& word);

}  // namespace sluice::cli
