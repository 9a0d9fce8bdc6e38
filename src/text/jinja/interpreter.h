// Runs a Program against a Runtime. One per rendering.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/parse/program.h"
#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// The variables of one loop, macro or block; those of the template itself are not in a Scope.
struct Scope {
  struct Binding {
    NameId name;
    Value value;
  };
  Scope* parent = nullptr;
  std::vector<Binding> bindings;
  bool is_captured = false;  // a macro sees it, so it stays as long as the interpreter
};

class Interpreter {
 public:
  Interpreter(const Program& program, Runtime& runtime);

  // Gives a variable of that name to the template, if it mentions it.
  void define(std::string_view name, Value value);
  std::string run();

  // --- for the objects that a template holds (objects.h)
  Value call_macro(const MacroStatement& macro, Scope* closure, const Arguments& arguments);
  // A recursive loop's body again, over other items; what it prints.
  Value call_loop(const ForStatement& loop, Scope* closure, Value items, int depth);

 private:
  enum class Flow { goes_on, breaks, continues };
  // Both restore what they replace when they go.
  class ScopeGuard;
  class Capture;
  struct EvaluatedArguments {
    std::vector<Value> positional;
    std::vector<NamedArgument> named;
    Arguments view() const { return {positional, named}; }
  };

  // --- names (interpreter.cpp)
  Value look_up(NameId name);
  void bind(NameId name, Value value);
  void assign(const Target& target, Value value);
  void capture_scopes();
  void emit(std::string_view text);
  void emit(Value value);
  Value captured(const Body& body, Flow& flow);

  // --- expressions (evaluate.cpp)
  Value evaluate(const Expression& expression);
  Value evaluate_or_none(const ExpressionPtr& expression);
  EvaluatedArguments evaluate(const ArgumentExpressions& arguments);
  Value evaluate_node(const LiteralExpression& node, Location at);
  Value evaluate_node(const NameExpression& node, Location at);
  Value evaluate_node(const SequenceExpression& node, Location at);
  Value evaluate_node(const DictExpression& node, Location at);
  Value evaluate_node(const UnaryExpression& node, Location at);
  Value evaluate_node(const BinaryExpression& node, Location at);
  Value evaluate_node(const LogicExpression& node, Location at);
  Value evaluate_node(const ConcatExpression& node, Location at);
  Value evaluate_node(const CompareExpression& node, Location at);
  Value evaluate_node(const ConditionalExpression& node, Location at);
  Value evaluate_node(const MemberExpression& node, Location at);
  Value evaluate_node(const IndexExpression& node, Location at);
  Value evaluate_node(const SliceExpression& node, Location at);
  Value evaluate_node(const CallExpression& node, Location at);
  Value evaluate_node(const FilterExpression& node, Location at);
  Value evaluate_node(const TestExpression& node, Location at);
  Value call(const CallExpression& node, Location at, const NamedArgument* extra);

  // --- statements (execute.cpp)
  Flow execute(const Body& body);
  Flow execute_node(const TextStatement& node, Location at);
  Flow execute_node(const OutputStatement& node, Location at);
  Flow execute_node(const IfStatement& node, Location at);
  Flow execute_node(const ForStatement& node, Location at);
  Flow execute_node(const SetStatement& node, Location at);
  Flow execute_node(const SetBlockStatement& node, Location at);
  Flow execute_node(const WithStatement& node, Location at);
  Flow execute_node(const MacroStatement& node, Location at);
  Flow execute_node(const CallStatement& node, Location at);
  Flow execute_node(const FilterStatement& node, Location at);
  Flow execute_node(const BreakStatement& node, Location at);
  Flow execute_node(const ContinueStatement& node, Location at);
  Flow execute_loop(const ForStatement& node, Value items, int depth);
  List& filtered_items(const ForStatement& node, List& items);

  // --- calls (call.cpp)
  void bind_parameters(const MacroStatement& macro, const Arguments& arguments);
  void bind_surplus_positional(const MacroStatement& macro, const Arguments& arguments);
  void bind_surplus_named(const MacroStatement& macro, const Arguments& arguments);

  struct Variable {
    Value value;
    bool is_set = false;
  };
  const Program& program_;
  Runtime& runtime_;
  std::vector<Variable> variables_;  // of the template itself, by NameId
  Scope* scope_ = nullptr;           // the innermost; null at the template's own level
  std::deque<Scope> scopes_;         // all that were ever needed at once
  std::vector<Scope*> free_scopes_;
  std::string* out_ = nullptr;
  Value block_input_;  // what the first filter of a block is applied to
  const NameId loop_name_, varargs_name_, kwargs_name_, caller_name_;
};

}  // namespace sluice::text::jinja
