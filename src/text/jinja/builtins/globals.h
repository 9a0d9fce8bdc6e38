// The functions a template finds without being given them: range, dict, namespace, joiner, cycler,
// and raise_exception and strftime_now, which Hugging Face adds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "text/jinja/interpreter.h"

namespace sluice::text::jinja {

// The local time that strftime_now shows; without it there is no such function.
using LocalTime = std::optional<std::chrono::local_seconds>;

void define_globals(Interpreter& interpreter, Runtime& runtime, const LocalTime& now);

}  // namespace sluice::text::jinja
