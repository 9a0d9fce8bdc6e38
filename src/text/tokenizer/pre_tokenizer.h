// The pre-tokenizers of byte-level BPE, by the names model files use: how text is cut into pieces
// within which merging happens. The expressions are the original ones of each family's
// tokenizer.json; llama.cpp approximates some of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/regex.h"

namespace sluice::text {

class PreTokenizer {
 public:
  // Throws Errc::unsupported_model for a name that is not known: wrong tokens are worse than an
  // error. An empty name means "default". `origin` is the file, for the error's text.
  explicit PreTokenizer(std::string_view name, std::string_view origin = "tokenizer");

  // Every name that is known, sorted, for texts and tests.
  static std::vector<std::string_view> names();

  // A piece that is a token as a whole is taken as it is, whatever the merges say.
  bool ignores_merges() const { return ignores_merges_; }
  // Whether a text begins with BOS where the file does not say.
  bool adds_bos() const { return adds_bos_; }

  // Appends the pieces of `text`, in order and without gaps; they lie in `text`. Bytes that are not
  // UTF-8 have no category: each becomes a piece of its own, and the text before and after it is
  // cut as if it ended, or began, there.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  void split_valid(std::string_view text, SplitScratch& scratch,
                   std::vector<std::string_view>& pieces) const;

  std::vector<SplitRegex> splits_;  // in sequence: each cuts the pieces of the one before
  bool ignores_merges_ = false;
  bool adds_bos_ = false;
};

}  // namespace sluice::text
