// Renders templates in one line, for the tests of the Jinja interpreter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/jinja/template.h"

namespace sluice::text::jinja {

inline std::string render(std::string_view text, const Json& variables = Json::object(),
                          const Limits& limits = {}) {
  const Template compiled(text, limits);
  Template::Variables given;
  for (const auto& [name, value] : variables.get_ref<const Json::object_t&>()) {
    given.emplace_back(name, &value);
  }
  return compiled.render(given);
}

struct Failure {
  Errc code = Errc::cancelled;
  std::string text = "no error";
};

inline Failure failure_of(std::string_view text, const Json& variables = Json::object(),
                          const Limits& limits = {}) {
  try {
    return {Errc::cancelled, "no error, but the output " + render(text, variables, limits)};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

// A template, and what it must render to, or what must be in its error.
struct Case {
  std::string_view text, expected;
};

inline void expect_renders(std::initializer_list<Case> cases,
                           const Json& variables = Json::object()) {
  for (const auto& [text, expected] : cases) {
    try {
      EXPECT_EQ(render(text, variables), expected) << "template: " << text;
    } catch (const Error& error) {
      ADD_FAILURE() << "template: " << text << "\n  expected: " << expected
                    << "\n  got the error: " << error.what();
    }
  }
}

inline void expect_fails(Errc code, std::initializer_list<Case> cases,
                         const Json& variables = Json::object()) {
  for (const auto& [text, expected] : cases) {
    const Failure failure = failure_of(text, variables);
    EXPECT_EQ(failure.code, code) << "template: " << text << "\n  got: " << failure.text;
    EXPECT_NE(failure.text.find(expected), std::string::npos)
        << "template: " << text << "\n  expected in the error: " << expected
        << "\n  got: " << failure.text;
  }
}

}  // namespace sluice::text::jinja
