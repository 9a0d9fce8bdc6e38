// Two schemas that must both hold, as one: for allOf, for keywords beside $ref, and for those
// beside anyOf.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "text/json_schema/keywords.h"

namespace sluice::text::grammar {

// `a` and `b` are objects without $ref, allOf and nullable; `path` is for messages. Throws Error if
// one of them is not malformed but cannot be joined: two patterns, two anyOf, and the like.
Json merge_schemas(Json a, const Json& b, const std::string& path);

}  // namespace sluice::text::grammar
