// Grammars as people use them, and a way to write text by them token by token: for the test of what
// masks cost, counted in steps, and for bench_text, which prints the time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/matcher.h"
#include "text/json_schema/json_schema.h"
#include "unit/text/grammar/random.h"

namespace sluice::text::test {

struct UsualGrammar {
  const char* name;
  Grammar (*compile)(std::string_view);
  std::string text;
};

inline Grammar from_gbnf(std::string_view text) { return compile_gbnf(text); }
inline Grammar from_schema(std::string_view text) { return compile_json_schema(text); }
inline Grammar from_schema_in_lines(std::string_view text) {
  JsonSchemaOptions options;
  options.spacing = JsonSpacing::lines;
  return compile_json_schema(text, options);
}
inline Grammar any_object(std::string_view) { return compile_json_object(); }

inline constexpr std::string_view kJsonGbnf = R"gbnf(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
)gbnf";

inline constexpr std::string_view kProgramGbnf = R"gbnf(
root       ::= statement+
statement  ::= name " = " expression ";\n" | "if (" expression ") {\n" statement+ "}\n"
             | "print(" expression ("," " "? expression)* ");\n" | comment
comment    ::= "//" [^\n]* "\n"
expression ::= term ((" + " | " - " | " * " | " < " | " == ") term)*
term       ::= name ("(" (expression ("," " "? expression)*)? ")")? | [0-9]+ ("." [0-9]+)? | text
             | "(" expression ")"
text       ::= "\"" [^"\\\n]* "\""
name       ::= [a-z_] [a-z0-9_]*
)gbnf";

inline constexpr std::string_view kPerson = R"({"type":"object","properties":{
  "name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":130},"email":{"type":"string","format":"email"},
  "role":{"enum":["admin","editor","reader"]},"tags":{"type":"array","items":{"type":"string"}},
  "address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},
  "zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street","city"],"additionalProperties":false}},
  "required":["name","age","role","tags","address"],"additionalProperties":false})";

inline constexpr std::string_view kLimits =
    R"({"type":"array","items":{"type":"object","properties":{
  "title":{"type":"string","minLength":3,"maxLength":80},"body":{"type":"string","maxLength":500},
  "slug":{"type":"string","pattern":"^[a-z0-9]+(-[a-z0-9]+)*$","maxLength":64},
  "score":{"type":"number","minimum":0,"maximum":1},"when":{"type":"string","format":"date-time"}},
  "required":["title","body","slug","score","when"]}})";

inline constexpr std::string_view kTree =
    R"({"$defs":{"node":{"type":"object","properties":{"label":{"type":"string"},
  "kind":{"anyOf":[{"type":"null"},{"enum":["leaf","branch"]},{"type":"integer"}]},
  "children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["label","kind","children"]}},
  "$ref":"#/$defs/node"})";

// Twenty optional properties, ten alternatives of objects.
inline std::string wide_schema() {
  std::string out = R"({"anyOf":[)";
  for (int a = 0; a < 10; ++a) {
    out +=
        cat(a == 0 ? "" : ",", R"({"type":"object","properties":{"type":{"const":"kind)", a, "\"}");
    for (int p = 0; p < 20; ++p)
      out += cat(",\"property_", p, R"(":{"type":["string","number","null"]})");
    out += R"(},"required":["type"],"additionalProperties":{"type":"boolean"}})";
  }
  return out + "]}";
}

inline std::vector<UsualGrammar> usual_grammars() {
  return {{"JSON as GBNF", from_gbnf, std::string(kJsonGbnf)},
          {"program as GBNF", from_gbnf, std::string(kProgramGbnf)},
          {"any JSON object", any_object, ""},
          {"person", from_schema, std::string(kPerson)},
          {"person, in lines", from_schema_in_lines, std::string(kPerson)},
          {"lengths and patterns", from_schema, std::string(kLimits)},
          {"recursive tree", from_schema, std::string(kTree)},
          {"200 properties", from_schema, wide_schema()}};
}

// Any allowed token, closing ones more often, so that all parts of a grammar are seen.
inline TokenId choose(const std::vector<uint64_t>& bits, const TokenTrie& trie, Dice& dice) {
  std::vector<TokenId> allowed, closing;
  for (size_t t = 0; t < trie.n_tokens(); ++t) {
    if ((bits[t / 64] >> (t % 64) & 1) == 0) continue;
    const auto id = static_cast<TokenId>(t);
    allowed.push_back(id);
    const std::string_view bytes = trie.bytes(id);
    if (!bytes.empty() && std::string_view("\"}],;:)").find(bytes[0]) != std::string_view::npos) {
      closing.push_back(id);
    }
  }
  if (!closing.empty() && dice.chance(4)) return closing[dice.roll(closing.size())];
  return allowed.empty() ? -1 : allowed[dice.roll(allowed.size())];
}

}  // namespace sluice::text::test
