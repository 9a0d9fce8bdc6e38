// See builtins.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/builtins.h"

namespace sluice::text::jinja {
namespace {

Builtin find(const BuiltinTable& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

Builtin find_filter(std::string_view name) {
  for (const BuiltinTable* table :
       {&text_filters(), &number_filters(), &sequence_filters(), &selection_filters()}) {
    if (const Builtin filter = find(*table, name)) return filter;
  }
  return nullptr;
}

Builtin find_test(std::string_view name) { return find(tests(), name); }

Builtin find_method(Value self, std::string_view name) {
  switch (self.kind()) {
    case Kind::string:
      return find(string_methods(), name);
    case Kind::list:
      return find(list_methods(), name);
    case Kind::tuple:
      return find(tuple_methods(), name);
    case Kind::dict:
      return find(dict_methods(), name);
    default:
      return nullptr;
  }
}

}  // namespace sluice::text::jinja
