// Flags that take one of a few values by its name, in any case.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice::cli {

template <typename T>
using Named = std::pair<std::string_view, T>;

// `names` and `value` must outlive the parse.
template <typename T, size_t n>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, const Named<T> (&names)[n],
                        T& value, const std::string& what) {
  const auto parse = [&value, &names, flag](const std::string& text) {
    const std::string name = CLI::detail::to_lower(text);
    const auto* found = std::ranges::find(names, name, &Named<T>::first);
    if (found == std::end(names)) {
      std::string known;
      for (size_t i = 0; i < n; ++i) {
        known += cat(i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i].first);
      }
      throw CLI::ValidationError(flag, cat("'", text, "'; expected ", known));
    }
    value = found->second;
  };
  return command.add_option_function<std::string>(flag, parse, what)->type_name("NAME");
}

}  // namespace sluice::cli
