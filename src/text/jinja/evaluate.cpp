// Expressions of interpreter.h. Operands come first; then `at` is set, so that an error names
// the operation and not its last operand.
// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "text/jinja/interpreter.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/print.h"

namespace sluice::text::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Runtime::Level level(runtime_);
  runtime_.step();
  return std::visit([&](const auto& node) { return evaluate_node(node, expression.at); },
                    expression.node);
}

Value Interpreter::evaluate_or_none(const ExpressionPtr& expression) {
  return expression == nullptr ? Value::none() : evaluate(*expression);
}

Value Interpreter::evaluate_node(const LiteralExpression& node, Location /*at*/) {
  return node.value;
}

Value Interpreter::evaluate_node(const NameExpression& node, Location /*at*/) {
  return look_up(node.name);
}

Value Interpreter::evaluate_node(const SequenceExpression& node, Location at) {
  List& list = runtime_.make_list();
  for (const ExpressionPtr& item : node.items) {
    const Value value = evaluate(*item);
    runtime_.at = at;
    runtime_.append(list, value);
  }
  return node.is_tuple ? Value::tuple(list) : Value::list(list);
}

Value Interpreter::evaluate_node(const DictExpression& node, Location at) {
  Dict& dict = runtime_.make_dict();
  for (const auto& [key_expression, value_expression] : node.entries) {
    const Value key = evaluate(*key_expression);
    const Value value = evaluate(*value_expression);
    runtime_.at = at;
    runtime_.set(dict, key, value);
  }
  return Value::dict(dict);
}

Value Interpreter::evaluate_node(const UnaryExpression& node, Location at) {
  const Value operand = evaluate(*node.operand);
  runtime_.at = at;
  return compute(runtime_, node.op, operand);
}

Value Interpreter::evaluate_node(const BinaryExpression& node, Location at) {
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  runtime_.at = at;
  return compute(runtime_, node.op, left, right);
}

Value Interpreter::evaluate_node(const LogicExpression& node, Location /*at*/) {
  const Value left = evaluate(*node.left);
  return is_true(left) == node.is_and ? evaluate(*node.right) : left;
}

Value Interpreter::evaluate_node(const ConcatExpression& node, Location at) {
  TextBuilder text(runtime_);
  for (const ExpressionPtr& part : node.parts) {
    const Value value = evaluate(*part);
    runtime_.at = at;
    print(text, value);
  }
  return text.finish();
}

Value Interpreter::evaluate_node(const CompareExpression& node, Location at) {
  Value left = evaluate(*node.first);
  for (const CompareExpression::Step& step : node.steps) {
    const Value right = evaluate(*step.right);
    runtime_.at = at;
    if (!compare(runtime_, step.op, left, right)) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_node(const ConditionalExpression& node, Location /*at*/) {
  if (is_true(evaluate(*node.condition))) return evaluate(*node.then);
  return node.otherwise == nullptr ? Value() : evaluate(*node.otherwise);
}

Value Interpreter::evaluate_node(const MemberExpression& node, Location at) {
  const Value object = evaluate(*node.object);
  runtime_.at = at;
  return get_attribute(runtime_, object, node.name);
}

Value Interpreter::evaluate_node(const IndexExpression& node, Location at) {
  const Value object = evaluate(*node.object);
  const Value index = evaluate(*node.index);
  runtime_.at = at;
  return get_item(runtime_, object, index);
}

Value Interpreter::evaluate_node(const SliceExpression& node, Location at) {
  const Value object = evaluate(*node.object);
  const Value start = evaluate_or_none(node.start);
  const Value stop = evaluate_or_none(node.stop);
  const Value step = evaluate_or_none(node.step);
  runtime_.at = at;
  return get_slice(runtime_, object, start, stop, step);
}

Interpreter::EvaluatedArguments Interpreter::evaluate(const ArgumentExpressions& arguments) {
  EvaluatedArguments values;
  for (const ExpressionPtr& argument : arguments.positional) {
    values.positional.push_back(evaluate(*argument));
  }
  for (const auto& [name, argument] : arguments.named) {
    values.named.push_back({name, evaluate(*argument)});
  }
  if (arguments.more_positional != nullptr) {
    const List& more = get_elements(runtime_, evaluate(*arguments.more_positional), "'*'");
    runtime_.step(more.items.size());
    runtime_.expect_room(more.items.size() * sizeof(Value));
    values.positional.insert(values.positional.end(), more.items.begin(), more.items.end());
  }
  if (arguments.more_named != nullptr) {
    const Value more = evaluate(*arguments.more_named);
    if (!more.is(Kind::dict)) runtime_.fail_kind("what follows '**'", "a dictionary", more);
    runtime_.step(more.as_dict().size());
    runtime_.expect_room(more.as_dict().size() * sizeof(NamedArgument));
    for (const auto& [key, value] : more.as_dict().entries()) {
      if (!key.is_string()) runtime_.fail_kind("the name of an argument", "a string", key);
      values.named.push_back({key.as_string(), value});
    }
  }
  return values;
}

Value Interpreter::call(const CallExpression& node, Location at, const NamedArgument* extra) {
  // The method of a value needs no object of its own when it is called at once.
  const auto* member = std::get_if<MemberExpression>(&node.callee->node);
  const Value target = member != nullptr ? evaluate(*member->object) : evaluate(*node.callee);
  EvaluatedArguments arguments = evaluate(node.arguments);
  if (extra != nullptr) arguments.named.push_back(*extra);
  runtime_.at = at;
  if (member == nullptr) return call_value(runtime_, target, arguments.view());
  if (target.is_undefined()) runtime_.fail_undefined(target);
  if (const Builtin method = find_method(target, member->name)) {
    return method(runtime_, target, arguments.view());
  }
  return call_value(runtime_, get_attribute(runtime_, target, member->name), arguments.view());
}

Value Interpreter::evaluate_node(const CallExpression& node, Location at) {
  return call(node, at, nullptr);
}

Value Interpreter::evaluate_node(const FilterExpression& node, Location at) {
  const Value input = node.input == nullptr ? block_input_ : evaluate(*node.input);
  const EvaluatedArguments arguments = evaluate(node.arguments);
  runtime_.at = at;
  return node.function(runtime_, input, arguments.view());
}

Value Interpreter::evaluate_node(const TestExpression& node, Location at) {
  const Value input = evaluate(*node.input);
  const EvaluatedArguments arguments = evaluate(node.arguments);
  runtime_.at = at;
  return node.function(runtime_, input, arguments.view());
}

}  // namespace sluice::text::jinja
