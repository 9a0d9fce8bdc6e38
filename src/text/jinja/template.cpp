// See template.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/template.h"

#include <algorithm>

#include "text/jinja/interpreter.h"

namespace sluice::text::jinja {

Template::Template(std::string_view text, const Limits& limits)
    : program_(compile(text, limits)), limits_(limits) {}

std::string Template::render(const Variables& variables, const LocalTime& now) const {
  Runtime runtime(limits_);
  Interpreter interpreter(*program_, runtime);
  define_globals(interpreter, runtime, now);
  for (const auto& [name, json] : variables) {
    if (mentions(name)) interpreter.define(name, from_json(runtime, *json));
  }
  return interpreter.run();
}

bool Template::mentions(std::string_view name) const {
  return std::ranges::find(program_->names, name) != program_->names.end();
}

}  // namespace sluice::text::jinja
