// A compiled template: the tree of its statements and expressions. Immutable once parsed, so any
// number of threads may render it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/builtins/builtins.h"
#include "text/jinja/location.h"
#include "text/jinja/parse/lexer.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/value.h"

namespace sluice::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;
using NameId = uint32_t;  // index into Program::names

// --- expressions

struct LiteralExpression {
  Value value;
};
struct NameExpression {
  NameId name;
};
struct SequenceExpression {
  std::vector<ExpressionPtr> items;
  bool is_tuple;
};
struct DictExpression {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct UnaryExpression {
  UnaryOp op;
  ExpressionPtr operand;
};
struct BinaryExpression {
  BinaryOp op;
  ExpressionPtr left, right;
};
struct LogicExpression {  // and, or
  bool is_and;
  ExpressionPtr left, right;
};
struct ConcatExpression {  // a ~ b ~ c
  std::vector<ExpressionPtr> parts;
};
struct CompareExpression {  // a < b <= c
  struct Step {
    CompareOp op;
    ExpressionPtr right;
  };
  ExpressionPtr first;
  std::vector<Step> steps;
};
struct ConditionalExpression {               // a if condition else b
  ExpressionPtr condition, then, otherwise;  // otherwise may be null
};
struct MemberExpression {  // a.name
  ExpressionPtr object;
  std::string_view name;
};
struct IndexExpression {  // a[index]
  ExpressionPtr object, index;
};
struct SliceExpression {  // a[start:stop:step]
  ExpressionPtr object;
  ExpressionPtr start, stop, step;  // each may be null
};
struct ArgumentExpressions {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string_view, ExpressionPtr>> named;
  ExpressionPtr more_positional, more_named;  // *a and **b; may be null
};
struct CallExpression {
  ExpressionPtr callee;
  ArgumentExpressions arguments;
};
struct FilterExpression {  // input | name(arguments)
  ExpressionPtr input;     // null at the front of a filter block
  std::string_view name;
  Builtin function;
  ArgumentExpressions arguments;
};
struct TestExpression {  // input is name(arguments)
  ExpressionPtr input;
  std::string_view name;
  Builtin function;
  ArgumentExpressions arguments;
};

struct Expression {
  using Node =
      std::variant<LiteralExpression, NameExpression, SequenceExpression, DictExpression,
                   UnaryExpression, BinaryExpression, LogicExpression, ConcatExpression,
                   CompareExpression, ConditionalExpression, MemberExpression, IndexExpression,
                   SliceExpression, CallExpression, FilterExpression, TestExpression>;
  Location at;
  int depth;  // of the tree below and with it
  Node node;
};

// --- statements

// What a value is stored in: a name, an attribute of a namespace, or several of these.
struct Target {
  Location at;
  NameId name = 0;
  std::string_view attribute;  // empty: the name itself
  std::vector<Target> parts;   // not empty: all others mean nothing
};

struct TextStatement {
  std::string_view text;
};
struct OutputStatement {
  ExpressionPtr value;
};
struct IfStatement {
  struct Branch {
    ExpressionPtr condition;  // null: else
    Body body;
  };
  std::vector<Branch> branches;
};
struct ForStatement {
  Target target;
  ExpressionPtr items;
  ExpressionPtr condition;  // may be null
  Body body, otherwise;
  bool is_recursive = false;
  bool uses_loop = false;  // the body names `loop`
};
struct SetStatement {
  Target target;
  ExpressionPtr value;
};
struct SetBlockStatement {
  Target target;
  ExpressionPtr filter;  // may be null
  Body body;
};
struct WithStatement {
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Body body;
};
struct Parameter {
  NameId name;
  std::string_view text;
  ExpressionPtr fallback;  // may be null
};
struct MacroStatement {
  NameId name;
  std::string_view text;
  std::vector<Parameter> parameters;
  Body body;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};
struct CallStatement {  // {% call(parameters) call %}body{% endcall %}
  MacroStatement caller;
  ExpressionPtr call;  // a CallExpression
};
struct FilterStatement {
  ExpressionPtr filter;
  Body body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  using Node = std::variant<TextStatement, OutputStatement, IfStatement, ForStatement, SetStatement,
                            SetBlockStatement, WithStatement, MacroStatement, CallStatement,
                            FilterStatement, BreakStatement, ContinueStatement>;
  Location at;
  Node node;
};

struct Program {
  Source source;  // what all string_views of the tree point into
  std::vector<std::string_view> names;
  Body body;
};

// Throws Error (bad_file) where the text is no template, or one with a construct that is not
// supported.
std::unique_ptr<const Program> compile(std::string_view text, const Limits& limits);

}  // namespace sluice::text::jinja
