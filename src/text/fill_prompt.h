// The prompt of a text to be filled in: what stands before the gap, what stands behind it, and
// other files for reference, around the tokens that models are trained with for this. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

struct FillFile {
  std::string name, text;
};

struct FillInput {
  std::string prefix, suffix;
  std::string begun;            // of the middle, what is there already
  std::vector<FillFile> files;  // for reference; the most important last
};

struct FillPrompt {
  std::vector<TokenId> tokens;
  int n_left_out = 0;  // of the files, from the first on
};

// The keys of a model file that would name the tokens it lacks for this, such as
// "tokenizer.ggml.fim_pre_token_id"; empty: it has all that are needed.
std::string missing_fill_tokens(const Tokenizer& tokenizer);

// [bos] PRE prefix SUF suffix MID begun, where nothing must be missing. Files stand before it, each
// as its name, a line end and its text: with the tokens REP and SEP, where the model has both, as
//   REP "myproject\n" SEP file SEP file ... SEP "filename\n" PRE ...
// Control tokens written in any of the texts stay text. Files are left out, the first before the
// others, where the whole would have more than n_most tokens; the rest is never cut.
FillPrompt make_fill_prompt(const Tokenizer& tokenizer, const FillInput& input, size_t n_most);

}  // namespace sluice::text
