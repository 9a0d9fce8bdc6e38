// Filters of builtins.h that choose, map or order elements.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/order.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"

namespace sluice::text::jinja {
namespace {

Value fallback(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'default'", arguments);
  const Value other = reader.next_or("default_value", Value::string(""));
  const bool also_false = reader.next_boolean_or("boolean", false);
  reader.done();
  return self.is_undefined() || (also_false && !is_true(self)) ? other : self;
}

// What follows the first argument, which names a filter or a test.
Arguments behind(const Arguments& arguments, size_t n) {
  return {arguments.positional.subspan(n), arguments.named};
}

// Jinja takes all that is false for an empty list here.
const List& elements_of(Runtime& runtime, Value self, std::string_view filter) {
  return is_true(self) ? get_elements(runtime, self, filter) : runtime.make_list();
}

Value map_attribute(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'map'", arguments);
  const Value attribute = reader.next("attribute");
  const std::optional<Value> missing = reader.next_if_given("default");
  reader.done();
  List& mapped = runtime.make_list();
  for (const Value item : elements_of(runtime, self, "filter 'map'").items) {
    runtime.append(mapped, get_path(runtime, item, attribute, missing));
  }
  return Value::list(mapped);
}

Value map(Runtime& runtime, Value self, const Arguments& arguments) {
  if (arguments.positional.empty()) return map_attribute(runtime, self, arguments);
  ArgumentReader reader(runtime, "filter 'map'", arguments);
  const std::string_view name = reader.next_text("filter");
  const Builtin filter = find_filter(name);
  if (filter == nullptr) reader.fail(cat("there is no filter ", quoted(name)));
  const Runtime::Level level(runtime);  // map('map', 'map', ...) goes deeper with each
  List& mapped = runtime.make_list();
  for (const Value item : elements_of(runtime, self, "filter 'map'").items) {
    runtime.append(mapped, filter(runtime, item, behind(arguments, 1)));
  }
  return Value::list(mapped);
}

struct Selection {
  std::string_view filter;
  bool by_attribute;
  bool keeps;  // what passes the test
};

Value select_if(Runtime& runtime, Value self, const Arguments& arguments,
                const Selection& selection) {
  ArgumentReader reader(runtime, selection.filter, arguments);
  const Value attribute = selection.by_attribute ? reader.next("attribute") : Value::none();
  const size_t n_before = selection.by_attribute ? 1 : 0;
  Builtin test = nullptr;
  if (arguments.positional.size() > n_before) {
    const std::string_view name = reader.next_text("test");
    test = find_test(name);
    if (test == nullptr) reader.fail(cat("there is no test ", quoted(name)));
  }
  List& selected = runtime.make_list();
  for (const Value item : elements_of(runtime, self, selection.filter).items) {
    runtime.step();
    const Value value = selection.by_attribute ? get_path(runtime, item, attribute) : item;
    const Value passes =
        test == nullptr ? value : test(runtime, value, behind(arguments, n_before + 1));
    if (is_true(passes) == selection.keeps) runtime.append(selected, item);
  }
  return Value::list(selected);
}

Value select(Runtime& runtime, Value self, const Arguments& arguments) {
  return select_if(runtime, self, arguments, {"filter 'select'", false, true});
}
Value reject(Runtime& runtime, Value self, const Arguments& arguments) {
  return select_if(runtime, self, arguments, {"filter 'reject'", false, false});
}
Value select_attribute(Runtime& runtime, Value self, const Arguments& arguments) {
  return select_if(runtime, self, arguments, {"filter 'selectattr'", true, true});
}
Value reject_attribute(Runtime& runtime, Value self, const Arguments& arguments) {
  return select_if(runtime, self, arguments, {"filter 'rejectattr'", true, false});
}

}  // namespace

const BuiltinTable& selection_filters() {
  static const BuiltinTable table = {
      {"d", fallback},
      {"default", fallback},
      {"dictsort", sort_dict},
      {"groupby", group_by},
      {"map", map},
      {"max", find_max},
      {"min", find_min},
      {"reject", reject},
      {"rejectattr", reject_attribute},
      {"select", select},
      {"selectattr", select_attribute},
      {"sort", sort},
      {"unique", unique},
  };
  return table;
}

}  // namespace sluice::text::jinja
