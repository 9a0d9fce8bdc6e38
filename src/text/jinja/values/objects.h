// The objects that statements and global functions make: macros, `loop`, namespaces.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/interpreter.h"
#include "text/jinja/values/value.h"

namespace sluice::text::jinja {

// Sees the variables around its definition as they are when it is called.
class Macro : public Object {
 public:
  Macro(Interpreter& interpreter, const MacroStatement& statement, Scope* closure)
      : interpreter_(interpreter), statement_(statement), closure_(closure) {}
  std::string describe(Runtime& runtime) const override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;

 private:
  Interpreter& interpreter_;
  const MacroStatement& statement_;
  Scope* const closure_;
};

// The variable `loop` inside a for statement.
class Loop : public Object {
 public:
  Loop(Interpreter& interpreter, const ForStatement& statement, Scope* closure, const List& items,
       int depth)
      : interpreter_(interpreter),
        statement_(statement),
        closure_(closure),
        items_(items),
        depth_(depth) {}
  void move_to(size_t index) { index_ = index; }

  std::string describe(Runtime& runtime) const override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool is_callable() const override { return statement_.is_recursive; }
  Value call(Runtime& runtime, const Arguments& arguments) override;

 private:
  static Value cycle(Runtime& runtime, Value self, const Arguments& arguments);
  static Value changed(Runtime& runtime, Value self, const Arguments& arguments);
  Value item(int64_t index) const;

  Interpreter& interpreter_;
  const ForStatement& statement_;
  Scope* const closure_;
  const List& items_;
  const int depth_;
  size_t index_ = 0;
  std::optional<Value> last_seen_;  // by changed()
};

// The only object whose attributes a template can set.
class Namespace : public Object {
 public:
  explicit Namespace(Dict& entries) : entries_(entries) {}
  Dict& entries() { return entries_; }
  std::string describe(Runtime& runtime) const override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

 private:
  Dict& entries_;
};

}  // namespace sluice::text::jinja
