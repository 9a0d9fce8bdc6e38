// Operators of parser.h: one function for each strength of binding.
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "text/jinja/parse/parser.h"

namespace sluice::text::jinja {

ExpressionPtr Parser::parse_expression() {
  const Nesting nesting(*this);
  ExpressionPtr value = parse_or();
  while (is_word("if")) {
    const Location at = take().at;
    ExpressionPtr condition = parse_or();
    ExpressionPtr otherwise = take_word("else") ? parse_expression() : nullptr;
    const int below = deepest({&value, &condition, &otherwise});
    value =
        make(at, below,
             ConditionalExpression{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExpressionPtr Parser::parse_or() {
  ExpressionPtr left = parse_and();
  while (is_word("or")) {
    const Location at = take().at;
    ExpressionPtr right = parse_and();
    const int below = deepest({&left, &right});
    left = make(at, below, LogicExpression{false, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr Parser::parse_and() {
  ExpressionPtr left = parse_not();
  while (is_word("and")) {
    const Location at = take().at;
    ExpressionPtr right = parse_not();
    const int below = deepest({&left, &right});
    left = make(at, below, LogicExpression{true, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!is_word("not")) return parse_compare();
  const Nesting nesting(*this);
  const Location at = take().at;
  ExpressionPtr operand = parse_not();
  const int below = operand->depth;
  return make(at, below, UnaryExpression{UnaryOp::logical_not, std::move(operand)});
}

namespace {

std::optional<CompareOp> comparison(std::string_view symbol) {
  if (symbol == "==") return CompareOp::eq;
  if (symbol == "!=") return CompareOp::ne;
  if (symbol == "<") return CompareOp::lt;
  if (symbol == "<=") return CompareOp::le;
  if (symbol == ">") return CompareOp::gt;
  if (symbol == ">=") return CompareOp::ge;
  return std::nullopt;
}

}  // namespace

ExpressionPtr Parser::parse_compare() {
  const Location at = peek().at;
  CompareExpression chain{parse_sum(), {}};
  int below = chain.first->depth;
  for (;;) {
    std::optional<CompareOp> op;
    if (peek().kind == Token::Kind::symbol) {
      op = comparison(peek().text);
    } else if (is_word("in")) {
      op = CompareOp::in;
    } else if (is_word("not") && is_word("in", 1)) {
      take();
      op = CompareOp::not_in;
    }
    if (!op) break;
    take();
    ExpressionPtr right = parse_sum();
    below = std::max(below, right->depth);
    chain.steps.push_back({*op, std::move(right)});
  }
  if (chain.steps.empty()) return std::move(chain.first);
  return make(at, below, std::move(chain));
}

ExpressionPtr Parser::parse_sum() {
  ExpressionPtr left = parse_concat();
  while (is_symbol("+") || is_symbol("-")) {
    const Token& sign = take();
    ExpressionPtr right = parse_concat();
    const int below = deepest({&left, &right});
    const BinaryOp op = sign.text == "+" ? BinaryOp::add : BinaryOp::subtract;
    left = make(sign.at, below, BinaryExpression{op, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr Parser::parse_concat() {
  const Location at = peek().at;
  std::vector<ExpressionPtr> parts;
  parts.push_back(parse_product());
  while (take_symbol("~")) parts.push_back(parse_product());
  if (parts.size() == 1) return std::move(parts.front());
  const int below = deepest(parts);
  return make(at, below, ConcatExpression{std::move(parts)});
}

ExpressionPtr Parser::parse_product() {
  ExpressionPtr left = parse_power();
  while (is_symbol("*") || is_symbol("/") || is_symbol("//") || is_symbol("%")) {
    const Token& sign = take();
    ExpressionPtr right = parse_power();
    const int below = deepest({&left, &right});
    const BinaryOp op = sign.text == "*"    ? BinaryOp::multiply
                        : sign.text == "/"  ? BinaryOp::divide
                        : sign.text == "//" ? BinaryOp::floor_divide
                                            : BinaryOp::modulo;
    left = make(sign.at, below, BinaryExpression{op, std::move(left), std::move(right)});
  }
  return left;
}

// Unlike Python, Jinja reads a ** b ** c from the left and -a ** b as (-a) ** b.
ExpressionPtr Parser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (is_symbol("**")) {
    const Location at = take().at;
    ExpressionPtr right = parse_unary();
    const int below = deepest({&left, &right});
    left = make(at, below, BinaryExpression{BinaryOp::power, std::move(left), std::move(right)});
  }
  return left;
}

// A filter applies to the number with its sign: -1|abs is 1.
ExpressionPtr Parser::parse_unary(bool with_filters) {
  ExpressionPtr operand;
  if (is_symbol("-") || is_symbol("+")) {
    const Nesting nesting(*this);
    const Token& sign = take();
    operand = parse_unary(false);
    const int below = operand->depth;
    const UnaryOp op = sign.text == "-" ? UnaryOp::minus : UnaryOp::plus;
    operand = make(sign.at, below, UnaryExpression{op, std::move(operand)});
  } else {
    operand = parse_primary();
  }
  operand = parse_postfix(std::move(operand));
  return with_filters ? parse_filters_and_tests(std::move(operand)) : std::move(operand);
}

}  // namespace sluice::text::jinja
