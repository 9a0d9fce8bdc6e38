// Between JSON and the values of a template.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

using Json = nlohmann::ordered_json;

// Strings are not copied: `json` must outlive the runtime. Integers beyond 64 signed bits become
// floats. Throws Error (bad_request) for text that is not UTF-8, and for too much or too deep.
Value from_json(Runtime& runtime, const Json& json);

// The value of a JSON text; Error (bad_request) where it is none.
Value parse_json(Runtime& runtime, std::string_view text);

// Keys become strings; undefined, functions and objects have no JSON form and are refused.
Json to_json(Runtime& runtime, Value value);

}  // namespace sluice::text::jinja
