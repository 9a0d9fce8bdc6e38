// Operands of parser.h: literals and names, and what may follow them: attributes, subscripts,
// calls, filters and tests.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "text/jinja/parse/parser.h"

namespace sluice::text::jinja {

ExpressionPtr Parser::parse_primary() {
  const Token& token = peek();
  const auto literal = [&](Value value) { return make(token.at, 0, LiteralExpression{value}); };
  switch (token.kind) {
    case Token::Kind::name: {
      take();
      if (token.text == "true" || token.text == "True") return literal(Value::boolean(true));
      if (token.text == "false" || token.text == "False") return literal(Value::boolean(false));
      if (token.text == "none" || token.text == "None") return literal(Value::none());
      const NameId name = name_id(token.text);
      ++n_uses_[name];
      return make(token.at, 0, NameExpression{name});
    }
    case Token::Kind::string: {
      take();
      if (peek().kind != Token::Kind::string) return literal(Value::string(token.text));
      std::string joined(token.text);  // "a" "b" is "ab"
      while (peek().kind == Token::Kind::string) joined += take().text;
      return literal(Value::string(program_.source.literals.emplace_back(std::move(joined))));
    }
    case Token::Kind::integer:
      take();
      return literal(Value::integer(token.integer));
    case Token::Kind::number:
      take();
      return literal(Value::number(token.number));
    default:
      if (is_symbol("(")) return parse_parentheses();
      if (is_symbol("[")) return parse_list();
      if (is_symbol("{")) return parse_dict();
      fail_expected("an expression");
  }
}

ExpressionPtr Parser::parse_list() {
  const Location at = take().at;
  std::vector<ExpressionPtr> items;
  while (!is_symbol("]")) {
    items.push_back(parse_expression());
    if (!take_symbol(",")) break;
  }
  expect_symbol("]", "at the end of a list");
  const int below = deepest(items);
  return make(at, below, SequenceExpression{std::move(items), false});
}

ExpressionPtr Parser::parse_dict() {
  const Location at = take().at;
  DictExpression dict;
  int below = 0;
  while (!is_symbol("}")) {
    ExpressionPtr key = parse_expression();
    expect_symbol(":", "after a dictionary's key");
    ExpressionPtr value = parse_expression();
    below = std::max(below, deepest({&key, &value}));
    dict.entries.emplace_back(std::move(key), std::move(value));
    if (!take_symbol(",")) break;
  }
  expect_symbol("}", "at the end of a dictionary");
  return make(at, below, std::move(dict));
}

ExpressionPtr Parser::parse_parentheses() {
  const Location at = take().at;
  if (take_symbol(")")) return make(at, 0, SequenceExpression{{}, true});
  ExpressionPtr inside = parse_tuple(true);
  expect_symbol(")", "to close the parenthesis");
  return inside;
}

ExpressionPtr Parser::parse_tuple(bool with_condition) {
  const Location at = peek().at;
  const auto parse_item = [&] { return with_condition ? parse_expression() : parse_or(); };
  const auto ends = [&] {
    const Token& token = peek();
    return token.kind == Token::Kind::output_end || token.kind == Token::Kind::block_end ||
           is_symbol(")");
  };
  ExpressionPtr first = parse_item();
  if (!is_symbol(",")) return first;
  std::vector<ExpressionPtr> items;
  items.push_back(std::move(first));
  while (take_symbol(",") && !ends()) items.push_back(parse_item());
  const int below = deepest(items);
  return make(at, below, SequenceExpression{std::move(items), true});
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr operand) {
  for (;;) {
    if (is_symbol(".")) {
      operand = parse_member(std::move(operand));
    } else if (is_symbol("[")) {
      operand = parse_subscript(std::move(operand));
    } else if (is_symbol("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr Parser::parse_member(ExpressionPtr object) {
  take();
  const Token& token = peek();
  const int below = object->depth;
  if (token.kind == Token::Kind::integer) {  // a.0
    take();
    ExpressionPtr index = make(token.at, 0, LiteralExpression{Value::integer(token.integer)});
    return make(token.at, below, IndexExpression{std::move(object), std::move(index)});
  }
  const Token& name = expect_name("the name of an attribute after '.'");
  return make(name.at, below, MemberExpression{std::move(object), name.text});
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr object) {
  const Location at = take().at;
  const auto parse_part = [&] {
    return is_symbol(":") || is_symbol("]") ? nullptr : parse_expression();
  };
  ExpressionPtr start = parse_part();
  if (!is_symbol(":")) {
    if (start == nullptr) fail_expected("an index");
    expect_symbol("]", "after an index");
    const int below = deepest({&object, &start});
    return make(at, below, IndexExpression{std::move(object), std::move(start)});
  }
  take();
  ExpressionPtr stop = parse_part();
  ExpressionPtr step = take_symbol(":") ? parse_part() : nullptr;
  expect_symbol("]", "after a slice");
  const int below = deepest({&object, &start, &stop, &step});
  return make(
      at, below,
      SliceExpression{std::move(object), std::move(start), std::move(stop), std::move(step)});
}

ExpressionPtr Parser::parse_call(ExpressionPtr callee) {
  const Location at = callee->at;
  int below = callee->depth;
  ArgumentExpressions arguments = parse_arguments(below);
  return make(at, below, CallExpression{std::move(callee), std::move(arguments)});
}

ArgumentExpressions Parser::parse_arguments(int& below) {
  take();  // (
  ArgumentExpressions arguments;
  const auto parse_value = [&] {
    ExpressionPtr value = parse_expression();
    below = std::max(below, value->depth);
    return value;
  };
  while (!is_symbol(")")) {
    if (is_symbol("*") || is_symbol("**")) {
      const Token& stars = take();
      ExpressionPtr& more = stars.text == "*" ? arguments.more_positional : arguments.more_named;
      if (more != nullptr) fail(stars, cat("a second '", stars.text, "' in one call"));
      more = parse_value();
    } else if (peek().kind == Token::Kind::name && is_symbol("=", 1)) {
      const std::string_view name = take().text;
      take();
      arguments.named.emplace_back(name, parse_value());
    } else {
      if (!arguments.named.empty() || arguments.more_positional || arguments.more_named) {
        fail(peek(), "an argument without a name follows one with a name");
      }
      arguments.positional.push_back(parse_value());
    }
    if (!take_symbol(",")) break;
  }
  expect_symbol(")", "after the arguments");
  return arguments;
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr operand) {
  for (;;) {
    if (take_symbol("|")) {
      operand = parse_filter(std::move(operand));
    } else if (is_word("is")) {
      operand = parse_test(std::move(operand));
    } else if (is_symbol("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr Parser::parse_filter(ExpressionPtr input) {
  const Token& name = expect_name("the name of a filter");
  const Builtin function = find_filter(name.text);
  if (function == nullptr) fail(name, cat("there is no filter ", quoted(name.text)));
  int below = input == nullptr ? 0 : input->depth;
  ArgumentExpressions arguments;
  if (is_symbol("(")) arguments = parse_arguments(below);
  return make(name.at, below,
              FilterExpression{std::move(input), name.text, function, std::move(arguments)});
}

ExpressionPtr Parser::parse_test(ExpressionPtr input) {
  const Location at = take().at;  // is
  const bool negated = take_word("not");
  const Token& name = expect_name("the name of a test after 'is'");
  const Builtin function = find_test(name.text);
  if (function == nullptr) fail(name, cat("there is no test ", quoted(name.text)));
  int below = input->depth;
  ArgumentExpressions arguments;
  // One argument may stand without parentheses: x is divisibleby 3.
  const auto starts_argument = [&] {
    constexpr std::array<std::string_view, 3> kNext = {"else", "or", "and"};
    const Token& token = peek();
    if (token.kind == Token::Kind::name) return std::ranges::find(kNext, token.text) == kNext.end();
    return token.kind == Token::Kind::string || token.kind == Token::Kind::integer ||
           token.kind == Token::Kind::number || is_symbol("[") || is_symbol("{");
  };
  if (is_symbol("(")) {
    arguments = parse_arguments(below);
  } else if (is_word("is")) {
    fail(peek(), "a test cannot follow a test; use parentheses");
  } else if (starts_argument() && !is_word("if") && !is_word("not") && !is_word("in")) {
    ExpressionPtr argument = parse_postfix(parse_primary());
    below = std::max(below, argument->depth);
    arguments.positional.push_back(std::move(argument));
  }
  ExpressionPtr test =
      make(at, below, TestExpression{std::move(input), name.text, function, std::move(arguments)});
  if (!negated) return test;
  const int depth = test->depth;
  return make(at, depth, UnaryExpression{UnaryOp::logical_not, std::move(test)});
}

}  // namespace sluice::text::jinja
