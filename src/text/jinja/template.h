// A Jinja template: compiled once, rendered any number of times, from any thread. What it may
// contain is what chat templates of model files contain: all of Jinja but other templates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/builtins/globals.h"
#include "text/jinja/limits.h"
#include "text/jinja/parse/program.h"
#include "text/jinja/values/json.h"

namespace sluice::text::jinja {

class Template {
 public:
  // Throws Error (bad_file) with line and column where the text is no template we can run.
  explicit Template(std::string_view text, const Limits& limits = {});

  // A later variable of the same name wins.
  using Variables = std::vector<std::pair<std::string_view, const Json*>>;

  // Throws Error (bad_request) with line and column where the template raises, computes what has no
  // value, or reaches a limit.
  std::string render(const Variables& variables, const LocalTime& now = {}) const;

  // Whether the name occurs as a variable anywhere.
  bool mentions(std::string_view name) const;

 private:
  std::unique_ptr<const Program> program_;
  Limits limits_;
};

}  // namespace sluice::text::jinja
