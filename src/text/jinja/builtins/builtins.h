// The functions that come with the language, by name: filters, tests, and the methods of strings,
// lists and dictionaries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// What a filter is applied to, a test asks about or a method belongs to is `self`.
using Builtin = Value (*)(Runtime& runtime, Value self, const Arguments& arguments);
using BuiltinTable = std::map<std::string_view, Builtin>;

// Null where there is none of that name.
Builtin find_filter(std::string_view name);
Builtin find_test(std::string_view name);  // answers with a boolean
Builtin find_method(Value self, std::string_view name);

// The parts that the above look into.
const BuiltinTable& text_filters();
const BuiltinTable& number_filters();
const BuiltinTable& sequence_filters();
const BuiltinTable& selection_filters();
const BuiltinTable& tests();
const BuiltinTable& string_methods();
const BuiltinTable& list_methods();
const BuiltinTable& tuple_methods();
const BuiltinTable& dict_methods();

}  // namespace sluice::text::jinja
