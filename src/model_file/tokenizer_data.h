// What a GGUF file says about its tokenizer, from its tokenizer.ggml.* keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gguf/metadata.h"
#include "text/tokenizer/tokenizer_data.h"

namespace sluice::model_file {

// Throws Errc::bad_file for a key that is missing or of the wrong type, and for an id of bos, eos,
// eot or eom without a token. Other ids without a token, which real files have, count as missing;
// in suppress_tokens they are left out, since what is no token cannot be sampled.
text::TokenizerData read_tokenizer_data(const gguf::Metadata& metadata);

}  // namespace sluice::model_file
