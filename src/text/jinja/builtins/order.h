// The filters that order elements; their table is in filters_selection.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

Value sort(Runtime& runtime, Value self, const Arguments& arguments);
Value sort_dict(Runtime& runtime, Value self, const Arguments& arguments);
Value unique(Runtime& runtime, Value self, const Arguments& arguments);
Value group_by(Runtime& runtime, Value self, const Arguments& arguments);
Value find_min(Runtime& runtime, Value self, const Arguments& arguments);
Value find_max(Runtime& runtime, Value self, const Arguments& arguments);

}  // namespace sluice::text::jinja
