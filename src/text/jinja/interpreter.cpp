// Names, scopes and output of interpreter.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include "text/jinja/interpreter_guards.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/objects.h"
#include "text/jinja/values/print.h"

namespace sluice::text::jinja {
namespace {

// What is not in the template has the id behind the last.
NameId id_of(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.names, name);
  return static_cast<NameId>(found - program.names.begin());
}

}  // namespace

Interpreter::Interpreter(const Program& program, Runtime& runtime)
    : program_(program),
      runtime_(runtime),
      variables_(program.names.size()),
      loop_name_(id_of(program, "loop")),
      varargs_name_(id_of(program, "varargs")),
      kwargs_name_(id_of(program, "kwargs")),
      caller_name_(id_of(program, "caller")) {}

void Interpreter::define(std::string_view name, Value value) {
  const NameId id = id_of(program_, name);
  if (id < variables_.size()) variables_[id] = {value, true};
}

std::string Interpreter::run() {
  std::string text;
  out_ = &text;
  execute(program_.body);
  return text;
}

Interpreter::ScopeGuard::ScopeGuard(Interpreter& interpreter, Scope* parent)
    : interpreter_(interpreter), outer_(interpreter.scope_) {
  if (interpreter_.free_scopes_.empty()) {
    interpreter_.runtime_.charge(sizeof(Scope));
    interpreter_.free_scopes_.push_back(&interpreter_.scopes_.emplace_back());
  }
  interpreter_.scope_ = interpreter_.free_scopes_.back();
  interpreter_.free_scopes_.pop_back();
  interpreter_.scope_->parent = parent;
}

Interpreter::ScopeGuard::~ScopeGuard() {
  Scope* const scope = std::exchange(interpreter_.scope_, outer_);
  if (scope->is_captured) return;
  scope->bindings.clear();
  interpreter_.free_scopes_.push_back(scope);
}

void Interpreter::capture_scopes() {
  for (Scope* scope = scope_; scope != nullptr && !scope->is_captured; scope = scope->parent) {
    scope->is_captured = true;
  }
}

Value Interpreter::look_up(NameId name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    runtime_.step(1 + scope->bindings.size() / 16);
    for (const Scope::Binding& binding : scope->bindings) {
      if (binding.name == name) return binding.value;
    }
  }
  const Variable& variable = variables_[name];
  if (variable.is_set) return variable.value;
  return Value::undefined(Absent::variable, program_.names[name]);
}

void Interpreter::bind(NameId name, Value value) {
  if (scope_ == nullptr) {
    variables_[name] = {value, true};
    return;
  }
  std::vector<Scope::Binding>& bindings = scope_->bindings;
  runtime_.step(1 + bindings.size() / 16);
  for (Scope::Binding& binding : bindings) {
    if (binding.name == name) {
      binding.value = value;
      return;
    }
  }
  if (bindings.size() == bindings.capacity()) {
    runtime_.charge(sizeof(Scope::Binding) * (bindings.size() + 1) * 2);
  }
  bindings.push_back({name, value});
}

void Interpreter::assign(const Target& target, Value value) {
  runtime_.at = target.at;
  if (!target.parts.empty()) {
    const List& items = get_elements(runtime_, value, "assigning to several names");
    if (items.items.size() != target.parts.size()) {
      runtime_.fail(
          cat("found ", items.items.size(), " values for ", target.parts.size(), " names"));
    }
    // Copied, because storing one value may change the list.
    const std::vector<Value> values = items.items;
    for (size_t i = 0; i < values.size(); ++i) assign(target.parts[i], values[i]);
    return;
  }
  if (target.attribute.empty()) return bind(target.name, value);
  const Value object = look_up(target.name);
  auto* const names =
      object.is(Kind::object) ? dynamic_cast<Namespace*>(&object.as_object()) : nullptr;
  if (names == nullptr) {
    runtime_.fail_kind(cat("the object before '.", on_one_line(target.attribute, 80), " ='"),
                       "a namespace()", object);
  }
  runtime_.set(names->entries(), Value::string(target.attribute), value);
}

void Interpreter::emit(std::string_view text) {
  runtime_.work(text.size());
  runtime_.charge_output(text.size());
  out_->append(text);
}

void Interpreter::emit(Value value) {
  if (value.is_string()) return emit(value.as_string());
  TextBuilder text(runtime_);
  print(text, value);
  emit(text.view());
}

Value Interpreter::captured(const Body& body, Flow& flow) {
  const ScopeGuard scope(*this, scope_);
  Capture capture(*this);
  flow = execute(body);
  return capture.take();
}

}  // namespace sluice::text::jinja
