// See pieces.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/pieces.h"

#include <string_view>
#include <utility>

namespace sluice::text::grammar {
namespace {

constexpr int kMostIndent = 20;

// Sets with more characters that need escapes share a rule for those.
constexpr size_t kFewEscapes = 4;

// What JSON never has unescaped inside a string.
CodePointSet special_characters() { return CodePointSet::of("\"\\").add(0, 0x1f); }

std::string escaped(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
}

}  // namespace

JsonPieces::JsonPieces(RuleSet& rules, JsonSpacing spacing) : rules_(rules) {
  const ExprId none = rules_.literal("");
  const ExprId maybe_one = rules_.optional(rules_.literal(" "));
  const ExprId line =
      rules_.sequence({rules_.literal("\n"), rules_.repeat(rules_.literal(" "), 0, kMostIndent)});
  space_ = spacing == JsonSpacing::lines ? rules_.choice({maybe_one, line}) : none;
  const ExprId after_mark = spacing == JsonSpacing::compact ? none : maybe_one;
  colon_ = rules_.sequence({rules_.literal(":"), after_mark});
  comma_ =
      rules_.sequence({rules_.literal(","), spacing == JsonSpacing::lines ? space_ : after_mark});
}

template <typename Make>
ExprId JsonPieces::shared(const char* name, Make&& make) {
  const auto found = shared_.find(name);
  if (found != shared_.end()) return found->second;
  const RuleId rule = rules_.declare(name);
  const ExprId call = rules_.call(rule);
  shared_.emplace(name, call);  // before it is made, as it may contain itself
  rules_.define(rule, make());
  return call;
}

ExprId JsonPieces::hex(int n_digits) {
  const ExprId one = rules_.characters(CodePointSet().add('0', '9').add('a', 'f').add('A', 'F'));
  return rules_.repeat(one, n_digits, n_digits);
}

// \u in halves of a surrogate pair only where both halves are there.
ExprId JsonPieces::escape() {
  const auto one_of = [&](std::string_view set) {
    return rules_.characters(CodePointSet::of(set));
  };
  const ExprId plain = rules_.sequence({one_of("0123456789abcefABCEF"), hex(3)});
  const ExprId below_surrogates = rules_.sequence({one_of("dD"), one_of("01234567"), hex(2)});
  const ExprId pair =
      rules_.sequence({one_of("dD"), one_of("89abAB"), hex(2), rules_.literal("\\u"), one_of("dD"),
                       one_of("cdefCDEF"), hex(2)});
  return rules_.sequence(
      {rules_.literal("\\"),
       rules_.choice({one_of("\"\\/bfnrt"),
                      rules_.sequence({rules_.literal("u"),
                                       rules_.choice({plain, below_surrogates, pair})})})});
}

// Escapes are a rule of their own here: characters are counted by writing them out, and without
// their escapes the copies are small.
ExprId JsonPieces::any_character() {
  const auto found = shared_.find("character");
  if (found != shared_.end()) return found->second;
  const ExprId character = rules_.choice({rules_.characters(special_characters().negated()),
                                          shared("escape", [&] { return escape(); })});
  return shared_.emplace("character", character).first->second;
}

ExprId JsonPieces::character_of(const CodePointSet& set) {
  CodePointSet plain = set;
  plain.remove(special_characters());
  std::vector<char32_t> special;
  for (const char32_t c : {U'"', U'\\'}) {
    if (set.contains(c)) special.push_back(c);
  }
  for (char32_t c = 0; c < 0x20; ++c) {
    if (set.contains(c)) special.push_back(c);
  }
  const auto escapes = [&] {
    std::vector<ExprId> out;
    for (const char32_t c : special) out.push_back(rules_.literal(escaped(c)));
    return rules_.choice(std::move(out));
  };
  if (special.empty()) return rules_.characters(std::move(plain));
  if (special.size() <= kFewEscapes) {
    return rules_.choice({rules_.characters(std::move(plain)), escapes()});
  }
  auto known = escaped_.find(special);
  if (known == escaped_.end()) {
    const RuleId rule = rules_.declare("escape");
    rules_.define(rule, escapes());
    known = escaped_.emplace(special, rules_.call(rule)).first;
  }
  return rules_.choice({rules_.characters(std::move(plain)), known->second});
}

ExprId JsonPieces::quoted(ExprId content) {
  const ExprId quote = rules_.literal("\"");
  return rules_.sequence({quote, content, quote});
}

ExprId JsonPieces::string() {
  return shared("string", [&] {
    const ExprId character =
        rules_.choice({rules_.characters(special_characters().negated()), escape()});
    return quoted(rules_.repeat(character, 0, kUnbounded));
  });
}

ExprId JsonPieces::digit() { return rules_.characters(CodePointSet().add('0', '9')); }

ExprId JsonPieces::digits(int min, int max) { return rules_.repeat(digit(), min, max); }

ExprId JsonPieces::integer() {
  return shared("integer", [&] {
    const ExprId first = rules_.characters(CodePointSet().add('1', '9'));
    return rules_.choice(
        {rules_.literal("0"),
         rules_.sequence({rules_.optional(rules_.literal("-")), first, digits(0, 17)})});
  });
}

ExprId JsonPieces::number() {
  return shared("number", [&] {
    const ExprId first = rules_.characters(CodePointSet().add('1', '9'));
    const ExprId whole =
        rules_.choice({rules_.literal("0"), rules_.sequence({first, digits(0, 14)})});
    const ExprId fraction = rules_.sequence({rules_.literal("."), digits(1, 15)});
    const ExprId exponent =
        rules_.sequence({rules_.characters(CodePointSet::of("eE")),
                         rules_.optional(rules_.characters(CodePointSet::of("+-"))), digits(1, 2)});
    return rules_.sequence({rules_.optional(rules_.literal("-")), whole, rules_.optional(fraction),
                            rules_.optional(exponent)});
  });
}

ExprId JsonPieces::boolean() {
  return rules_.choice({rules_.literal("true"), rules_.literal("false")});
}

ExprId JsonPieces::null() { return rules_.literal("null"); }

ExprId JsonPieces::in_brackets(const char* open, ExprId content, const char* close) {
  return rules_.sequence({rules_.literal(open), space_, content, space_, rules_.literal(close)});
}

ExprId JsonPieces::value() {
  return shared("any value", [&] {
    return rules_.choice({object(), array(), string(), number(), boolean(), null()});
  });
}

ExprId JsonPieces::object() {
  return shared("any object", [&] {
    const ExprId pair = rules_.sequence({string(), colon_, value()});
    return in_brackets("{", rules_.list(comma_, {pair}, {Presence::any_number}), "}");
  });
}

ExprId JsonPieces::array() {
  return shared("any array", [&] {
    return in_brackets("[", rules_.list(comma_, {value()}, {Presence::any_number}), "]");
  });
}

}  // namespace sluice::text::grammar
