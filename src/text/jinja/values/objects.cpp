// See objects.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/objects.h"

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/print.h"

namespace sluice::text::jinja {

std::string Macro::describe(Runtime& /*runtime*/) const {
  return cat("<Macro ", quoted(statement_.text), ">");
}

std::optional<Value> Macro::attribute(Runtime& /*runtime*/, std::string_view name) {
  if (name == "name") return Value::string(statement_.text);
  return std::nullopt;
}

Value Macro::call(Runtime& /*runtime*/, const Arguments& arguments) {
  return interpreter_.call_macro(statement_, closure_, arguments);
}

std::string Loop::describe(Runtime& /*runtime*/) const {
  return cat("<LoopContext ", index_ + 1, "/", items_.items.size(), ">");
}

Value Loop::item(int64_t index) const {
  if (index < 0 || index >= std::ssize(items_.items)) return Value::undefined(Absent::element, {});
  return items_.items[static_cast<size_t>(index)];
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  const auto i = static_cast<int64_t>(index_);
  const int64_t n = std::ssize(items_.items);
  if (name == "index") return Value::integer(i + 1);
  if (name == "index0") return Value::integer(i);
  if (name == "revindex") return Value::integer(n - i);
  if (name == "revindex0") return Value::integer(n - i - 1);
  if (name == "first") return Value::boolean(i == 0);
  if (name == "last") return Value::boolean(i + 1 == n);
  if (name == "length") return Value::integer(n);
  if (name == "depth") return Value::integer(depth_);
  if (name == "depth0") return Value::integer(depth_ - 1);
  if (name == "previtem") return item(i - 1);
  if (name == "nextitem") return item(i + 1);
  const auto bound = [&](std::string_view method, Builtin function) {
    return Value::object(runtime.make_object<BoundBuiltin>(method, Value::object(*this), function));
  };
  if (name == "cycle") return bound("cycle", &Loop::cycle);
  if (name == "changed") return bound("changed", &Loop::changed);
  return std::nullopt;
}

Value Loop::cycle(Runtime& runtime, Value self, const Arguments& arguments) {
  const auto& loop = static_cast<const Loop&>(self.as_object());
  if (arguments.positional.empty()) runtime.fail("loop.cycle: there is nothing to cycle through");
  return arguments.positional[loop.index_ % arguments.positional.size()];
}

Value Loop::changed(Runtime& runtime, Value self, const Arguments& arguments) {
  auto& loop = static_cast<Loop&>(self.as_object());
  List& seen = runtime.make_list({arguments.positional.begin(), arguments.positional.end()});
  const Value now = Value::tuple(seen);
  if (loop.last_seen_ && equal(runtime, *loop.last_seen_, now)) return Value::boolean(false);
  loop.last_seen_ = now;
  return Value::boolean(true);
}

Value Loop::call(Runtime& runtime, const Arguments& arguments) {
  ArgumentReader reader(runtime, "loop", arguments);
  const Value items = reader.next("iterable");
  reader.done();
  return interpreter_.call_loop(statement_, closure_, items, depth_ + 1);
}

std::string Namespace::describe(Runtime& runtime) const {
  TextBuilder text(runtime);
  print_repr(text, Value::dict(entries_));
  return cat("<Namespace ", text.view(), ">");
}

std::optional<Value> Namespace::attribute(Runtime& /*runtime*/, std::string_view name) {
  const Value* value = entries_.find(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

}  // namespace sluice::text::jinja
