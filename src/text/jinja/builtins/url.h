// Text for addresses, as the filter urlencode makes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// %XX for every byte that is not a letter, a digit or one of -._~ and, if it is kept, the slash.
std::string url_quoted(std::string_view text, bool keeps_slash);

// a=1&b=2 from a dictionary, or from a list of pairs.
Value url_query(Runtime& runtime, Value pairs);

}  // namespace sluice::text::jinja
