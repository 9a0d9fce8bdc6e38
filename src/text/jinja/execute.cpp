// Statements of interpreter.h.
// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "text/jinja/interpreter.h"
#include "text/jinja/interpreter_guards.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/objects.h"

namespace sluice::text::jinja {

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Runtime::Level level(runtime_);
  for (const Statement& statement : body) {
    runtime_.step();
    runtime_.at = statement.at;
    const Flow flow = std::visit([&](const auto& node) { return execute_node(node, statement.at); },
                                 statement.node);
    if (flow != Flow::goes_on) return flow;
  }
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const TextStatement& node, Location /*at*/) {
  emit(node.text);
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const OutputStatement& node, Location at) {
  const Value value = evaluate(*node.value);
  runtime_.at = at;
  emit(value);
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const IfStatement& node, Location /*at*/) {
  for (const IfStatement::Branch& branch : node.branches) {
    if (branch.condition == nullptr || is_true(evaluate(*branch.condition))) {
      return execute(branch.body);
    }
  }
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const ForStatement& node, Location at) {
  const Value items = evaluate(*node.items);
  runtime_.at = at;
  return execute_loop(node, items, 1);
}

// Those that `if` lets through; it sees the loop's variables, but not `loop`.
List& Interpreter::filtered_items(const ForStatement& node, List& items) {
  List& filtered = runtime_.make_list();
  const ScopeGuard scope(*this, scope_);
  for (size_t i = 0; i < items.items.size(); ++i) {
    const Value item = items.items[i];
    scope_->bindings.clear();
    assign(node.target, item);
    if (is_true(evaluate(*node.condition))) runtime_.append(filtered, item);
  }
  return filtered;
}

Interpreter::Flow Interpreter::execute_loop(const ForStatement& node, Value value, int depth) {
  List* items = &get_elements(runtime_, value, "statement 'for'");
  if (node.is_recursive) capture_scopes();
  Scope* const closure = scope_;
  if (node.condition != nullptr) items = &filtered_items(node, *items);
  const ScopeGuard scope(*this, closure);
  Loop* const loop =
      node.uses_loop ? &runtime_.make_object<Loop>(*this, node, closure, *items, depth) : nullptr;
  bool has_finished = false;  // any time
  // The body may append to the very list.
  for (size_t i = 0; i < items->items.size(); ++i) {
    runtime_.step();
    scope_->bindings.clear();
    if (loop != nullptr) {
      loop->move_to(i);
      bind(loop_name_, Value::object(*loop));
    }
    assign(node.target, items->items[i]);
    const Flow flow = execute(node.body);
    if (flow == Flow::breaks) break;
    if (flow == Flow::goes_on) has_finished = true;
  }
  if (has_finished) return Flow::goes_on;
  scope_->bindings.clear();
  return execute(node.otherwise);
}

Interpreter::Flow Interpreter::execute_node(const SetStatement& node, Location /*at*/) {
  assign(node.target, evaluate(*node.value));
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const SetBlockStatement& node, Location /*at*/) {
  Flow flow = Flow::goes_on;
  Value value = captured(node.body, flow);
  if (flow != Flow::goes_on) return flow;
  if (node.filter != nullptr) {
    block_input_ = value;
    value = evaluate(*node.filter);
  }
  assign(node.target, value);
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const FilterStatement& node, Location at) {
  Flow flow = Flow::goes_on;
  block_input_ = captured(node.body, flow);
  if (flow != Flow::goes_on) return flow;
  const Value value = evaluate(*node.filter);
  runtime_.at = at;
  emit(value);
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const WithStatement& node, Location /*at*/) {
  // All values are those from outside, whatever the names before them.
  std::vector<Value> values;
  for (const auto& [target, value] : node.variables) values.push_back(evaluate(*value));
  const ScopeGuard scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
  return execute(node.body);
}

Interpreter::Flow Interpreter::execute_node(const MacroStatement& node, Location /*at*/) {
  capture_scopes();
  bind(node.name, Value::object(runtime_.make_object<Macro>(*this, node, scope_)));
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const CallStatement& node, Location at) {
  capture_scopes();
  const NamedArgument caller{
      "caller", Value::object(runtime_.make_object<Macro>(*this, node.caller, scope_))};
  const Value value = call(std::get<CallExpression>(node.call->node), node.call->at, &caller);
  runtime_.at = at;
  emit(value);
  return Flow::goes_on;
}

Interpreter::Flow Interpreter::execute_node(const BreakStatement& /*node*/, Location /*at*/) {
  return Flow::breaks;
}

Interpreter::Flow Interpreter::execute_node(const ContinueStatement& /*node*/, Location /*at*/) {
  return Flow::continues;
}

}  // namespace sluice::text::jinja
