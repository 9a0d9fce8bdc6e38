// What values consist of: attributes, items, slices, elements; and calling them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/builtins/builtins.h"
#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// object.name: a method, else an entry of a dictionary, else undefined. Undefined has none.
Value get_attribute(Runtime& runtime, Value object, std::string_view name);

// object[key]: an entry or element, else a method, else undefined. Undefined has none.
Value get_item(Runtime& runtime, Value object, Value key);

// As filters take attribute=: "a.b.0" goes through items; an integer is an index. `missing`, if it
// is given, stands for what is undefined on the way.
Value get_path(Runtime& runtime, Value object, Value path,
               const std::optional<Value>& missing = std::nullopt);

// Each of start, stop and step is none or an integer.
Value get_slice(Runtime& runtime, Value object, Value start, Value stop, Value step);

// What a loop goes over: elements, keys or characters; nothing for undefined. A list itself, not a
// copy of it; `what` names, for the error, who wants to go over it.
List& get_elements(Runtime& runtime, Value value, std::string_view what);

// len(); of undefined 0.
int64_t get_length(Runtime& runtime, Value value);

Value call_value(Runtime& runtime, Value callee, const Arguments& arguments);

// A builtin as a value: `items.append` without the call.
class BoundBuiltin : public Object {
 public:
  BoundBuiltin(std::string_view name, Value self, Builtin function)
      : name_(name), self_(self), function_(function) {}
  std::string describe(Runtime& runtime) const override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return function_(runtime, self_, arguments);
  }

 private:
  const std::string_view name_;
  const Value self_;
  const Builtin function_;
};

}  // namespace sluice::text::jinja
