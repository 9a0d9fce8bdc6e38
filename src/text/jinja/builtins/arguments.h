// Reads the arguments of a builtin one after another, by position or by name, and refuses what is
// left over. `function` stands in every message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

class ArgumentReader {
 public:
  ArgumentReader(Runtime& runtime, std::string_view function, const Arguments& arguments)
      : runtime_(runtime), function_(function), arguments_(arguments) {}

  std::optional<Value> next_if_given(std::string_view name);
  Value next(std::string_view name);  // must be given
  Value next_or(std::string_view name, Value fallback);
  std::string_view next_text(std::string_view name);
  std::string_view next_text_or(std::string_view name, std::string_view fallback);
  int64_t next_integer(std::string_view name);
  int64_t next_integer_or(std::string_view name, int64_t fallback);
  bool next_boolean_or(std::string_view name, bool fallback);  // anything is true or false

  // After the last.
  void done() const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::string_view as_text(std::string_view name, Value value) const;
  int64_t as_integer(std::string_view name, Value value) const;

  Runtime& runtime_;
  const std::string_view function_;
  const Arguments& arguments_;
  size_t n_positional_ = 0;
  uint64_t read_named_ = 0;  // one bit each
};

}  // namespace sluice::text::jinja
