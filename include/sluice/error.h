// The one exception sluice throws, for faults that come from outside: a file, a request, memory, a
// device. Its text is one line that says what was found, what was expected, and what to do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "sluice/export.h"

namespace sluice {

enum class Errc {
  bad_file,
  unsupported_model,
  out_of_memory,
  bad_request,
  cancelled,
  device,
  busy,           // too many requests wait already
  shutting_down,  // no more are taken
};

class SLUICE_API Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& text) : std::runtime_error(text), code_(code) {}
  Errc code() const { return code_; }

 private:
  Errc code_;
};

}  // namespace sluice
