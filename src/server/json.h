// JSON of requests and answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace sluice::server {

using Json = text::Json;

// What a request may nest; templates and schemas need far less.
inline constexpr int kMostDepth = 64;

// The object that a body holds. Throws ApiError (400) for what is no JSON object, no UTF-8, or
// deeper than kMostDepth; the last is seen before anything is built.
Json parse_body(std::string_view body);

// As one line. What is not UTF-8 is replaced.
std::string dump(const Json& json);

}  // namespace sluice::server
