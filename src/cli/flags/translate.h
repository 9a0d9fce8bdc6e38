// Command lines as other programs' users type them, in the words of this one, before the parser
// sees them. Short flags of several letters are flags of their own here, never bundles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// What a command knows of its flags.
struct KnownFlags {
  std::string command;             // "run"
  std::vector<std::string> names;  // "-m", "--model", ...: for "did you mean"
  // Whether this flag takes a value; nothing: the command has no such flag.
  std::function<std::optional<bool>(std::string_view name)> takes_value;
  // Another command that has this flag; empty: none.
  std::function<std::string(std::string_view name)> owner;
};

struct Translation {
  std::vector<std::string> args;
  std::vector<std::string> notes;  // one line each: flags that have no meaning here
};

// A flag that is unknown, or that this program lacks. One line.
class FlagRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `args`: those behind the command. Throws FlagRefused.
Translation translate(const std::vector<std::string>& args, const KnownFlags& known);

// The most similar of some names; empty: none is similar enough.
std::string nearest(std::string_view name, const std::vector<std::string>& names);

}  // namespace sluice::cli
