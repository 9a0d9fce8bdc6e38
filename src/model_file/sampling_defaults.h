// What a model file recommends for sampling: its keys general.sampling.*, and the tokens that its
// tokenizer never wants sampled. Used where the user says nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gguf/metadata.h"
#include "sampler/options.h"

namespace sluice::model_file {

// Keys that are missing stay unset. Throws Errc::bad_file, with file and key in its text, for a
// value of the wrong type or out of range.
sampler::SamplerOptions read_sampling_defaults(const gguf::Metadata& metadata);

}  // namespace sluice::model_file
