// Tokens to a tree, by recursive descent in the order of Jinja's own grammar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "text/jinja/parse/program.h"

namespace sluice::text::jinja {

class Parser {
 public:
  // Fills program.names and program.body from program.source.
  Parser(Program& program, const Limits& limits);
  void parse();

 private:
  // --- tokens (parser.cpp)
  const Token& peek(size_t ahead = 0) const;
  const Token& take() { return tokens_[pos_ + 1 < tokens_.size() ? pos_++ : pos_]; }
  bool is_symbol(std::string_view symbol, size_t ahead = 0) const;
  bool is_word(std::string_view word, size_t ahead = 0) const;
  bool take_symbol(std::string_view symbol);
  bool take_word(std::string_view word);
  const Token& expect_name(std::string_view what);
  void expect_symbol(std::string_view symbol, std::string_view where);
  void expect_block_end(std::string_view where);
  [[noreturn]] void fail(const Token& token, std::string_view what) const;
  [[noreturn]] void fail_expected(std::string_view expected) const;

  // One construct inside another, for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  NameId name_id(std::string_view name);
  // How often expressions named it so far.
  int n_uses(std::string_view name) const;
  // Refuses a tree that is too deep; `below` is the depth of the deepest part.
  ExpressionPtr make(Location at, int below, Expression::Node node) const;

  // --- expressions (parse_expression.cpp), weakest first
  ExpressionPtr parse_expression();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);

  // --- operands (parse_operand.cpp)
  ExpressionPtr parse_primary();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_postfix(ExpressionPtr operand);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr operand);
  ExpressionPtr parse_filter(ExpressionPtr input);  // behind the bar
  ExpressionPtr parse_test(ExpressionPtr input);
  ExpressionPtr parse_member(ExpressionPtr object);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_call(ExpressionPtr callee);
  ArgumentExpressions parse_arguments(int& below);
  // a, b, c without parentheses is a tuple where the grammar allows one.
  ExpressionPtr parse_tuple(bool with_condition);

  // --- statements (parse_statement.cpp)
  // Up to a block that begins with one of the words, which is left to be taken.
  Body parse_body(std::initializer_list<std::string_view> ends);
  bool at_end_of_body(std::initializer_list<std::string_view> ends) const;
  // Takes "word %}".
  void take_end(std::string_view word);
  void parse_statement(Body& body);
  Statement parse_if(Location at);
  Statement parse_for(Location at);
  Statement parse_set(Location at);
  Statement parse_with(Location at);
  Statement parse_macro(Location at);
  Statement parse_call_block(Location at);
  Statement parse_filter_block(Location at);
  Statement parse_loop_control(Location at, std::string_view word);
  Target parse_target(bool with_attribute);
  Target parse_single_target(bool with_attribute);
  void parse_parameters(MacroStatement& macro);
  void parse_macro_body(MacroStatement& macro, std::string_view end);

  Program& program_;
  const Limits limits_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // around the current place, within one macro
  std::map<std::string_view, NameId> name_ids_;
  std::vector<int> n_uses_;  // by NameId, in expressions
};

// The depth of the deepest of them; null counts as 0.
int deepest(std::initializer_list<const ExpressionPtr*> parts);
int deepest(const std::vector<ExpressionPtr>& parts);

}  // namespace sluice::text::jinja
