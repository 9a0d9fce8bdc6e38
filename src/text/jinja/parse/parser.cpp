// Tokens and bookkeeping of parser.h, and compile() of program.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parse/parser.h"

#include <algorithm>

namespace sluice::text::jinja {
namespace {

std::string shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end of the template";
    case Token::Kind::string:
      return cat("the string ", quoted(token.text));
    default:
      return quoted(token.text);
  }
}

}  // namespace

int deepest(std::initializer_list<const ExpressionPtr*> parts) {
  int depth = 0;
  for (const ExpressionPtr* part : parts) {
    if (*part != nullptr) depth = std::max(depth, (*part)->depth);
  }
  return depth;
}

int deepest(const std::vector<ExpressionPtr>& parts) {
  int depth = 0;
  for (const ExpressionPtr& part : parts) depth = std::max(depth, part->depth);
  return depth;
}

Parser::Parser(Program& program, const Limits& limits)
    : program_(program), limits_(limits), tokens_(tokenize(program.source)) {}

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.nesting_ <= parser_.limits_.nesting) return;
  parser_.fail(parser_.peek(), cat("blocks and expressions nest deeper than the limit of ",
                                   parser_.limits_.nesting, " levels"));
}

ExpressionPtr Parser::make(Location at, int below, Expression::Node node) const {
  if (below >= limits_.nesting) {
    fail_at(Errc::bad_file, at,
            cat("the expression nests deeper than the limit of ", limits_.nesting, " levels"));
  }
  return std::make_unique<Expression>(Expression{at, below + 1, std::move(node)});
}

NameId Parser::name_id(std::string_view name) {
  const auto [entry, is_new] = name_ids_.emplace(name, static_cast<NameId>(program_.names.size()));
  if (is_new) {
    program_.names.push_back(name);
    n_uses_.push_back(0);
  }
  return entry->second;
}

int Parser::n_uses(std::string_view name) const {
  const auto found = name_ids_.find(name);
  return found == name_ids_.end() ? 0 : n_uses_[found->second];
}

const Token& Parser::peek(size_t ahead) const {
  return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)];
}

bool Parser::is_symbol(std::string_view symbol, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == Token::Kind::symbol && token.text == symbol;
}

bool Parser::is_word(std::string_view word, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == Token::Kind::name && token.text == word;
}

bool Parser::take_symbol(std::string_view symbol) {
  if (!is_symbol(symbol)) return false;
  take();
  return true;
}

bool Parser::take_word(std::string_view word) {
  if (!is_word(word)) return false;
  take();
  return true;
}

const Token& Parser::expect_name(std::string_view what) {
  if (peek().kind != Token::Kind::name) fail_expected(what);
  return take();
}

void Parser::expect_symbol(std::string_view symbol, std::string_view where) {
  if (!take_symbol(symbol)) fail_expected(cat("'", symbol, "' ", where));
}

void Parser::expect_block_end(std::string_view where) {
  if (peek().kind != Token::Kind::block_end) {
    fail_expected(cat("'%}' at the end of '", where, "'"));
  }
  take();
}

void Parser::fail(const Token& token, std::string_view what) const {
  fail_at(Errc::bad_file, token.at, what);
}

void Parser::fail_expected(std::string_view expected) const {
  fail(peek(), cat("found ", shown(peek()), ", expected ", expected));
}

std::unique_ptr<const Program> compile(std::string_view text, const Limits& limits) {
  auto program = std::make_unique<Program>();
  set_source(program->source, text, limits);
  Parser(*program, limits).parse();
  return program;
}

}  // namespace sluice::text::jinja
