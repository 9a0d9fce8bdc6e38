// The flags and commands that people know from llama.cpp and Ollama, in one table: which mean
// something here, which have no meaning here and are passed over with a note, and which are refused
// with what to do instead. A command's own flags come first: one that it has is never looked up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice::cli {

enum class Meaning { same, none, absent };
enum class Takes { nothing, value, on_off };  // on_off: a value may follow, such as on, off or auto

struct ForeignFlag {
  // Names with commas between. "-o json" is that flag with this value alone; it is found before the
  // command's own.
  std::string_view names;
  Takes takes;
  Meaning meaning;
  // same: what is read instead; the value goes behind it, after a final '@' without a space.
  std::string_view ours;
  std::string_view why;           // none: why it has no meaning. absent: what to do instead.
  std::string_view command = {};  // of this command alone; such a row comes before the others
};

std::span<const ForeignFlag> foreign_flags();

// The row of a command's flag with this value, or of its name alone; null: unknown.
const ForeignFlag* find_foreign(std::string_view command, std::string_view name,
                                std::string_view value);
const ForeignFlag* find_foreign(std::string_view command, std::string_view name);

// A command's name, as Ollama has it.
struct ForeignCommand {
  std::string_view name;
  std::string_view ours;  // empty: there is none
  std::string_view instead;
};
std::span<const ForeignCommand> foreign_commands();

// Both tables as Markdown, for docs/flags.md and `sluice help flags`.
std::string foreign_flags_page();

}  // namespace sluice::cli
