// See arguments.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/arguments.h"

#include <algorithm>

namespace sluice::text::jinja {
namespace {

constexpr size_t kMostNamed = 64;  // no builtin has as many parameters

}  // namespace

std::optional<Value> ArgumentReader::next_if_given(std::string_view name) {
  if (n_positional_ < arguments_.positional.size()) return arguments_.positional[n_positional_++];
  const size_t n = std::min(arguments_.named.size(), kMostNamed);
  for (size_t i = 0; i < n; ++i) {
    if (arguments_.named[i].name != name) continue;
    read_named_ |= uint64_t{1} << i;
    return arguments_.named[i].value;
  }
  return std::nullopt;
}

Value ArgumentReader::next(std::string_view name) {
  const std::optional<Value> value = next_if_given(name);
  if (!value) fail(cat("the argument '", name, "' is missing"));
  return *value;
}

Value ArgumentReader::next_or(std::string_view name, Value fallback) {
  return next_if_given(name).value_or(fallback);
}

std::string_view ArgumentReader::as_text(std::string_view name, Value value) const {
  if (!value.is_string()) {
    runtime_.fail_kind(cat(function_, ": the argument '", name, "'"), "a string", value);
  }
  return value.as_string();
}

int64_t ArgumentReader::as_integer(std::string_view name, Value value) const {
  if (!value.is_integral()) {
    runtime_.fail_kind(cat(function_, ": the argument '", name, "'"), "an integer", value);
  }
  return value.as_integer();
}

std::string_view ArgumentReader::next_text(std::string_view name) {
  return as_text(name, next(name));
}

std::string_view ArgumentReader::next_text_or(std::string_view name, std::string_view fallback) {
  return as_text(name, next_or(name, Value::string(fallback)));
}

int64_t ArgumentReader::next_integer(std::string_view name) { return as_integer(name, next(name)); }

int64_t ArgumentReader::next_integer_or(std::string_view name, int64_t fallback) {
  return as_integer(name, next_or(name, Value::integer(fallback)));
}

bool ArgumentReader::next_boolean_or(std::string_view name, bool fallback) {
  return is_true(next_or(name, Value::boolean(fallback)));
}

void ArgumentReader::done() const {
  if (n_positional_ < arguments_.positional.size()) {
    fail(cat("takes not more than ", n_positional_, " arguments, found ",
             arguments_.positional.size()));
  }
  for (size_t i = 0; i < arguments_.named.size(); ++i) {
    if (i < kMostNamed && (read_named_ >> i & 1) != 0) continue;
    fail(cat("does not take the argument ", quoted(arguments_.named[i].name), " here"));
  }
}

void ArgumentReader::fail(std::string_view what) const {
  runtime_.fail(cat(function_, ": ", what));
}

}  // namespace sluice::text::jinja
