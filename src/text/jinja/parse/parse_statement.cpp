// Statements of parser.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "text/jinja/parse/parser.h"

namespace sluice::text::jinja {

void Parser::parse() {
  program_.body = parse_body({});
  if (peek().kind != Token::Kind::end) fail_expected("a statement");
}

bool Parser::at_end_of_body(std::initializer_list<std::string_view> ends) const {
  return peek().kind == Token::Kind::block_begin &&
         std::ranges::any_of(ends, [&](std::string_view word) { return is_word(word, 1); });
}

Body Parser::parse_body(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(*this);
  Body body;
  while (!at_end_of_body(ends)) {
    const Token& token = peek();
    switch (token.kind) {
      case Token::Kind::text:
        take();
        body.push_back({token.at, TextStatement{token.text}});
        break;
      case Token::Kind::output_begin: {
        take();
        ExpressionPtr value = parse_tuple(true);
        if (peek().kind != Token::Kind::output_end) fail_expected("'}}' after the expression");
        take();
        const Location at = value->at;
        body.push_back({at, OutputStatement{std::move(value)}});
        break;
      }
      case Token::Kind::block_begin:
        take();
        parse_statement(body);
        break;
      default:
        if (ends.size() == 0) return body;
        fail_expected(cat("'{% ", *(ends.end() - 1), " %}'"));
    }
  }
  take();  // {%
  return body;
}

void Parser::take_end(std::string_view word) {
  if (!take_word(word)) fail_expected(cat("'", word, "'"));
  expect_block_end(word);
}

void Parser::parse_statement(Body& body) {
  const Token& word = expect_name("the name of a statement after '{%'");
  if (word.text == "if") return body.push_back(parse_if(word.at));
  if (word.text == "for") return body.push_back(parse_for(word.at));
  if (word.text == "set") return body.push_back(parse_set(word.at));
  if (word.text == "with") return body.push_back(parse_with(word.at));
  if (word.text == "macro") return body.push_back(parse_macro(word.at));
  if (word.text == "call") return body.push_back(parse_call_block(word.at));
  if (word.text == "filter") return body.push_back(parse_filter_block(word.at));
  if (word.text == "break" || word.text == "continue") {
    return body.push_back(parse_loop_control(word.at, word.text));
  }
  if (word.text == "generation") {  // marks what the model wrote, for training; prints its body
    expect_block_end(word.text);
    Body inside = parse_body({"endgeneration"});
    take_end("endgeneration");
    std::ranges::move(inside, std::back_inserter(body));
    return;
  }
  constexpr std::array<std::string_view, 9> kKnown = {
      "include", "import", "from", "extends", "block", "autoescape", "do", "trans", "print"};
  if (std::ranges::find(kKnown, word.text) != kKnown.end()) {
    fail(word, cat("the statement ", quoted(word.text), " is not supported in chat templates"));
  }
  fail(word, cat("there is no statement ", quoted(word.text), " that could begin here"));
}

Statement Parser::parse_if(Location at) {
  IfStatement statement;
  ExpressionPtr condition = parse_tuple(false);
  expect_block_end("if");
  for (;;) {
    Body body = parse_body({"elif", "else", "endif"});
    statement.branches.push_back({std::move(condition), std::move(body)});
    if (take_word("elif")) {
      condition = parse_tuple(false);
      expect_block_end("elif");
      continue;
    }
    if (take_word("else")) {
      expect_block_end("else");
      statement.branches.push_back({nullptr, parse_body({"endif"})});
    }
    take_end("endif");
    return {at, std::move(statement)};
  }
}

Statement Parser::parse_for(Location at) {
  ForStatement statement;
  statement.target = parse_target(false);
  if (!take_word("in")) fail_expected("'in' after the loop's variables");
  statement.items = parse_tuple(false);
  if (take_word("if")) statement.condition = parse_expression();
  statement.is_recursive = take_word("recursive");
  expect_block_end("for");
  const int n_before = n_uses("loop");
  ++loops_;
  statement.body = parse_body({"else", "endfor"});
  --loops_;
  statement.uses_loop = n_uses("loop") > n_before;
  if (take_word("else")) {
    expect_block_end("else");
    statement.otherwise = parse_body({"endfor"});
  }
  take_end("endfor");
  return {at, std::move(statement)};
}

Statement Parser::parse_set(Location at) {
  Target target = parse_target(true);
  if (take_symbol("=")) {
    ExpressionPtr value = parse_tuple(true);
    expect_block_end("set");
    return {at, SetStatement{std::move(target), std::move(value)}};
  }
  ExpressionPtr filter;
  while (take_symbol("|")) filter = parse_filter(std::move(filter));
  if (peek().kind != Token::Kind::block_end) {
    fail_expected("'=', '|' or '%}' after the name that is set");
  }
  take();
  Body body = parse_body({"endset"});
  take_end("endset");
  return {at, SetBlockStatement{std::move(target), std::move(filter), std::move(body)}};
}

Target Parser::parse_single_target(bool with_attribute) {
  const Nesting nesting(*this);
  if (take_symbol("(")) {
    Target target = parse_target(with_attribute);
    expect_symbol(")", "after the names");
    return target;
  }
  const Token& name = expect_name("the name of a variable");
  constexpr std::array<std::string_view, 6> kConstants = {"true",  "True", "false",
                                                          "False", "none", "None"};
  if (std::ranges::find(kConstants, name.text) != kConstants.end()) {
    fail(name, cat(quoted(name.text), " is a constant and cannot be set"));
  }
  Target target{name.at, name_id(name.text), {}, {}};
  if (with_attribute && take_symbol(".")) {
    target.attribute = expect_name("the name of an attribute after '.'").text;
  }
  return target;
}

Target Parser::parse_target(bool with_attribute) {
  Target first = parse_single_target(with_attribute);
  if (!is_symbol(",")) return first;
  Target several{first.at, 0, {}, {}};
  several.parts.push_back(std::move(first));
  while (take_symbol(",")) {
    if (is_word("in") || is_symbol("=") || is_symbol(")")) break;  // a, in: a comma too much
    several.parts.push_back(parse_single_target(with_attribute));
  }
  return several;
}

Statement Parser::parse_with(Location at) {
  WithStatement statement;
  while (peek().kind != Token::Kind::block_end) {
    if (!statement.variables.empty()) expect_symbol(",", "between variables");
    Target target = parse_target(false);
    expect_symbol("=", "after the name of a variable");
    statement.variables.emplace_back(std::move(target), parse_expression());
  }
  expect_block_end("with");
  statement.body = parse_body({"endwith"});
  take_end("endwith");
  return {at, std::move(statement)};
}

void Parser::parse_parameters(MacroStatement& macro) {
  expect_symbol("(", "before the parameters");
  while (!is_symbol(")")) {
    if (!macro.parameters.empty()) expect_symbol(",", "between parameters");
    const Token& name = expect_name("the name of a parameter");
    Parameter parameter{name_id(name.text), name.text, nullptr};
    if (take_symbol("=")) {
      parameter.fallback = parse_expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback != nullptr) {
      fail(name, "a parameter without a default follows one with a default");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  take();
}

void Parser::parse_macro_body(MacroStatement& macro, std::string_view end) {
  const int n_varargs = n_uses("varargs");
  const int n_kwargs = n_uses("kwargs");
  const int n_caller = n_uses("caller");
  const int loops = std::exchange(loops_, 0);  // break does not reach out of a macro
  macro.body = parse_body({end});
  take_end(end);
  loops_ = loops;
  macro.uses_varargs = n_uses("varargs") > n_varargs;
  macro.uses_kwargs = n_uses("kwargs") > n_kwargs;
  macro.uses_caller = n_uses("caller") > n_caller;
}

Statement Parser::parse_macro(Location at) {
  const Token& name = expect_name("the name of the macro");
  MacroStatement macro{name_id(name.text), name.text, {}, {}};
  parse_parameters(macro);
  expect_block_end("macro");
  parse_macro_body(macro, "endmacro");
  return {at, std::move(macro)};
}

Statement Parser::parse_call_block(Location at) {
  CallStatement statement{{name_id("caller"), "caller", {}, {}}, nullptr};
  if (is_symbol("(")) parse_parameters(statement.caller);
  statement.call = parse_expression();
  if (!std::holds_alternative<CallExpression>(statement.call->node)) {
    fail_at(Errc::bad_file, at, "statement 'call': a call of a macro must follow");
  }
  expect_block_end("call");
  parse_macro_body(statement.caller, "endcall");
  return {at, std::move(statement)};
}

Statement Parser::parse_filter_block(Location at) {
  ExpressionPtr filter = parse_filter(nullptr);
  while (take_symbol("|")) filter = parse_filter(std::move(filter));
  expect_block_end("filter");
  Body body = parse_body({"endfilter"});
  take_end("endfilter");
  return {at, FilterStatement{std::move(filter), std::move(body)}};
}

Statement Parser::parse_loop_control(Location at, std::string_view word) {
  if (loops_ == 0) fail_at(Errc::bad_file, at, cat("statement '", word, "' outside of a loop"));
  expect_block_end(word);
  if (word == "break") return {at, BreakStatement{}};
  return {at, ContinueStatement{}};
}

}  // namespace sluice::text::jinja
