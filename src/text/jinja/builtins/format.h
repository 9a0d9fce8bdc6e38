// Text with places to fill in: Python's "%s of %d" % (a, b) and "{} of {n}".format(a, n=b).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// `values` is a tuple of values, a dictionary for %(name)s, or one value.
Value format_percent(Runtime& runtime, std::string_view format, Value values);

// {}, {0}, {name}, each with !r or !s and a format specification; no attributes or indices.
Value format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments);

}  // namespace sluice::text::jinja
