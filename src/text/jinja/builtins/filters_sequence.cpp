// Filters of builtins.h that look at the elements of a value, or take it apart.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/print.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

Value length(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'length'", arguments).done();
  return Value::integer(get_length(runtime, self));
}

Value first(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'first'", arguments).done();
  const std::vector<Value>& items = get_elements(runtime, self, "filter 'first'").items;
  return items.empty() ? Value::undefined(Absent::element, {}) : items.front();
}

Value last(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'last'", arguments).done();
  const std::vector<Value>& items = get_elements(runtime, self, "filter 'last'").items;
  return items.empty() ? Value::undefined(Absent::element, {}) : items.back();
}

Value list(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'list'", arguments).done();
  List& copy = runtime.make_list();
  for (const Value item : get_elements(runtime, self, "filter 'list'").items) {
    runtime.append(copy, item);
  }
  return Value::list(copy);
}

Value items(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'items'", arguments).done();
  List& pairs = runtime.make_list();
  if (self.is_undefined()) return Value::list(pairs);
  if (!self.is(Kind::dict)) runtime.fail_kind("filter 'items': the value", "a dictionary", self);
  for (const auto& [key, value] : self.as_dict().entries()) {
    runtime.append(pairs, Value::tuple(runtime.make_list({key, value})));
  }
  return Value::list(pairs);
}

Value join(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'join'", arguments);
  const std::string_view separator =
      to_text(runtime, reader.next_or("d", Value::string(""))).as_string();
  const Value attribute = reader.next_or("attribute", Value::none());
  reader.done();
  TextBuilder out(runtime);
  bool is_first = true;
  for (const Value item : get_elements(runtime, self, "filter 'join'").items) {
    if (!is_first) out.add(separator);
    is_first = false;
    print(out, attribute.is(Kind::none) ? item : get_path(runtime, item, attribute));
  }
  return out.finish();
}

Value reverse(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'reverse'", arguments).done();
  if (self.is_string()) {
    return get_slice(runtime, self, Value::none(), Value::none(), Value::integer(-1));
  }
  List& forward = get_elements(runtime, self, "filter 'reverse'");
  return get_slice(runtime, Value::list(forward), Value::none(), Value::none(), Value::integer(-1));
}

Value sum(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'sum'", arguments);
  const Value attribute = reader.next_or("attribute", Value::none());
  Value total = reader.next_or("start", Value::integer(0));
  reader.done();
  for (const Value item : get_elements(runtime, self, "filter 'sum'").items) {
    runtime.step();
    const Value part = attribute.is(Kind::none) ? item : get_path(runtime, item, attribute);
    total = compute(runtime, BinaryOp::add, total, part);
  }
  return total;
}

// The arguments of batch and slice: how many, and what fills the places that stay empty (or none).
struct Grouping {
  int64_t n = 0;
  Value fill = Value::none();
};

Grouping read_grouping(Runtime& runtime, const Arguments& arguments, std::string_view filter,
                       std::string_view count_name) {
  ArgumentReader reader(runtime, filter, arguments);
  const int64_t n = reader.next_integer(count_name);
  const Value fill = reader.next_or("fill_with", Value::none());
  reader.done();
  if (n < 1) reader.fail(cat("'", count_name, "' must be positive"));
  return {n, fill};
}

// Rows of n; the last one is filled up, if something is given to fill it with.
Value batch(Runtime& runtime, Value self, const Arguments& arguments) {
  const auto [n, fill] = read_grouping(runtime, arguments, "filter 'batch'", "linecount");
  List& rows = runtime.make_list();
  List* row = nullptr;
  for (const Value item : get_elements(runtime, self, "filter 'batch'").items) {
    if (row == nullptr || std::ssize(row->items) == n) {
      row = &runtime.make_list();
      runtime.append(rows, Value::list(*row));
    }
    runtime.append(*row, item);
  }
  while (row != nullptr && !fill.is(Kind::none) && std::ssize(row->items) < n) {
    runtime.append(*row, fill);
  }
  return Value::list(rows);
}

// n columns; the first ones are longer where it does not divide.
Value slice(Runtime& runtime, Value self, const Arguments& arguments) {
  const auto [n, fill] = read_grouping(runtime, arguments, "filter 'slice'", "slices");
  const std::vector<Value>& all = get_elements(runtime, self, "filter 'slice'").items;
  const int64_t n_each = std::ssize(all) / n;
  const int64_t n_longer = std::ssize(all) % n;
  List& columns = runtime.make_list();
  size_t next = 0;
  for (int64_t i = 0; i < n; ++i) {
    List& column = runtime.make_list();
    const int64_t n_here = n_each + (i < n_longer ? 1 : 0);
    for (int64_t k = 0; k < n_here; ++k) runtime.append(column, all[next++]);
    if (!fill.is(Kind::none) && n_longer > 0 && i >= n_longer) runtime.append(column, fill);
    runtime.append(columns, Value::list(column));
  }
  return Value::list(columns);
}

}  // namespace

const BuiltinTable& sequence_filters() {
  static const BuiltinTable table = {
      {"batch", batch},     {"count", length}, {"first", first},   {"items", items},
      {"join", join},       {"last", last},    {"length", length}, {"list", list},
      {"reverse", reverse}, {"slice", slice},  {"sum", sum},
  };
  return table;
}

}  // namespace sluice::text::jinja
