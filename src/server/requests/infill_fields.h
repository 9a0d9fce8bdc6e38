// A request to llama.cpp's /infill, as what is to be filled in. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/requests/generation_fields.h"
#include "text/fill_prompt.h"

namespace sluice::server {

// `input_prefix`, `input_suffix`, `prompt` and `input_extra`, a list of objects with `filename` and
// `text`. Throws ApiError.
text::FillInput read_infill(const Fields& fields);

// As /v1/completions has them, for one answer. Editors name a sampler "infill", which there is none
// of here; it is left out.
GenerationFields read_infill_generation(const Json& body);

}  // namespace sluice::server
