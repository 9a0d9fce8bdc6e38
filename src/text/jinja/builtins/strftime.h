// Dates as text, in English and with Python's directives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// %Y %y %m %d %e %H %I %M %S %p %j %A %a %B %b %F %T %D %%, and %-d and the like without the zero.
// Other directives are refused.
void format_time(TextBuilder& out, std::string_view format, std::chrono::local_seconds time);

}  // namespace sluice::text::jinja
