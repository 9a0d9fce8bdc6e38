// The two RAII guards of Interpreter, for the files that implement it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "text/jinja/interpreter.h"

namespace sluice::text::jinja {

// Variables of their own below `parent`, until it goes.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* parent);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* const outer_;
};

// Output into a string of its own, until it goes.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter) : interpreter_(interpreter), outer_(interpreter.out_) {
    interpreter_.out_ = &text_;
  }
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Value take() { return interpreter_.runtime_.make_string(std::move(text_)); }

 private:
  Interpreter& interpreter_;
  std::string* const outer_;
  std::string text_;
};

}  // namespace sluice::text::jinja
