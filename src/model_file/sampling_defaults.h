// What a model file recommends for sampling, in its keys general.sampling.*: used where the user
// says nothing. (Tokens that are never to be sampled stand in tokenizer_data.h.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gguf/metadata.h"
#include "sampler/options.h"

namespace sluice::model_file {

// Keys that are missing stay unset. Throws Errc::bad_file, with file and key in its text, for a
// value of the wrong type or out of range.
sampler::SamplerOptions read_sampling_defaults(const gguf::Metadata& metadata);

}  // namespace sluice::model_file
