// Whole texts against grammars, for tests that need no vocabulary.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/matcher.h"
#include "text/json_schema/json_schema.h"

namespace sluice::text::test {

inline GrammarMatcher matcher_of(Grammar grammar) {
  const auto trie = std::make_shared<const TokenTrie>(std::vector<std::string>{"a"});
  return {std::make_shared<const Grammar>(std::move(grammar)), trie, {}};
}

// What became of a text: "match", "begin" of one, or refused "at N", the byte that cannot follow.
inline std::string verdict(GrammarMatcher matcher, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!matcher.accept_bytes(text.substr(i, 1))) return cat("at ", i);
  }
  return matcher.is_complete() ? "match" : "begin";
}

inline std::string gbnf_verdict(std::string_view grammar, std::string_view text) {
  return verdict(matcher_of(compile_gbnf(grammar)), text);
}

inline std::string schema_verdict(std::string_view schema, std::string_view text,
                                  const JsonSchemaOptions& options = {}) {
  return verdict(matcher_of(compile_json_schema(schema, options)), text);
}

// Every text of `yes` matches, none of `no` does.
inline void expect_schema(std::string_view schema, const std::vector<std::string>& yes,
                          const std::vector<std::string>& no) {
  const GrammarMatcher matcher = matcher_of(compile_json_schema(schema));
  for (const std::string& text : yes) {
    EXPECT_EQ(verdict(matcher, text), "match") << schema << "\ntext: " << text;
  }
  for (const std::string& text : no) {
    EXPECT_NE(verdict(matcher, text), "match") << schema << "\ntext: " << text;
  }
}

// The text of the Error a call throws, or "" if it throws none.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_request) << error.what();
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.what();
  }
  return "";
}

inline std::string gbnf_error(std::string_view grammar, const GrammarLimits& limits = {}) {
  return error_of([&] { compile_gbnf(grammar, limits); });
}

inline std::string schema_error(std::string_view schema, const JsonSchemaOptions& options = {}) {
  return error_of([&] { compile_json_schema(schema, options); });
}

}  // namespace sluice::text::test
