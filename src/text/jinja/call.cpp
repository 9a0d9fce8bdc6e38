// Calls from inside a template of interpreter.h: macros and recursive loops.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/interpreter_guards.h"

namespace sluice::text::jinja {

Value Interpreter::call_loop(const ForStatement& loop, Scope* closure, Value items, int depth) {
  const ScopeGuard scope(*this, closure);
  Capture capture(*this);
  execute_loop(loop, items, depth);
  return capture.take();
}

Value Interpreter::call_macro(const MacroStatement& macro, Scope* closure,
                              const Arguments& arguments) {
  const ScopeGuard scope(*this, closure);
  bind_parameters(macro, arguments);
  bind_surplus_positional(macro, arguments);
  bind_surplus_named(macro, arguments);
  Capture capture(*this);
  execute(macro.body);
  return capture.take();
}

// By position, else by name, else the default, which sees the parameters before it.
void Interpreter::bind_parameters(const MacroStatement& macro, const Arguments& arguments) {
  runtime_.step(arguments.named.size() * macro.parameters.size() / 16);
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    const auto named = std::ranges::find(arguments.named, parameter.text, &NamedArgument::name);
    const bool is_named = named != arguments.named.end();
    if (i < arguments.positional.size()) {
      if (is_named) {
        runtime_.fail(
            cat("macro ", quoted(macro.text), " is given two values for ", quoted(parameter.text)));
      }
      bind(parameter.name, arguments.positional[i]);
    } else if (is_named) {
      bind(parameter.name, named->value);
    } else if (parameter.fallback != nullptr) {
      bind(parameter.name, evaluate(*parameter.fallback));
    } else {
      bind(parameter.name, Value::undefined(Absent::variable, parameter.text));
    }
  }
}

void Interpreter::bind_surplus_positional(const MacroStatement& macro, const Arguments& arguments) {
  const size_t n_parameters = macro.parameters.size();
  if (!macro.uses_varargs && arguments.positional.size() > n_parameters) {
    runtime_.fail(cat("macro ", quoted(macro.text), " takes not more than ", n_parameters,
                      " arguments, found ", arguments.positional.size()));
  }
  if (!macro.uses_varargs) return;
  List& surplus = runtime_.make_list();
  for (size_t i = n_parameters; i < arguments.positional.size(); ++i) {
    runtime_.append(surplus, arguments.positional[i]);
  }
  bind(varargs_name_, Value::tuple(surplus));
}

void Interpreter::bind_surplus_named(const MacroStatement& macro, const Arguments& arguments) {
  const auto is_parameter = [&](std::string_view name) {
    return std::ranges::find(macro.parameters, name, &Parameter::text) != macro.parameters.end();
  };
  Value caller = Value::undefined(Absent::variable, "caller");
  Dict* const surplus = macro.uses_kwargs ? &runtime_.make_dict() : nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (is_parameter(name)) continue;
    if (macro.uses_caller && name == "caller") {
      caller = value;
    } else if (surplus != nullptr) {
      runtime_.set(*surplus, Value::string(name), value);
    } else {
      runtime_.fail(cat("macro ", quoted(macro.text), " has no parameter ", quoted(name)));
    }
  }
  if (surplus != nullptr) bind(kwargs_name_, Value::dict(*surplus));
  if (macro.uses_caller && !is_parameter("caller")) bind(caller_name_, caller);
}

}  // namespace sluice::text::jinja
