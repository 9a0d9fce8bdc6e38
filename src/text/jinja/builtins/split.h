// The methods of strings that take them apart; their table is in methods_string.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

Value split_text(Runtime& runtime, Value self, const Arguments& arguments);
Value split_text_from_right(Runtime& runtime, Value self, const Arguments& arguments);
Value split_text_into_lines(Runtime& runtime, Value self, const Arguments& arguments);
Value partition_text(Runtime& runtime, Value self, const Arguments& arguments);
Value partition_text_from_right(Runtime& runtime, Value self, const Arguments& arguments);

}  // namespace sluice::text::jinja
