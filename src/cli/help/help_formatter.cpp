// See help_formatter.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/help/help_formatter.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "cli/help/examples.h"

namespace sluice::cli {
namespace {

constexpr size_t kColumns = 100;

// Wrapped at words; the parser's formatter indents the lines behind the first.
std::string wrapped(std::string_view text, size_t n_columns) {
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column > 0) {
      const bool fits = column + 1 + end <= n_columns;
      out += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return "N";
  if (type == "FLOAT") return "NUMBER";
  return type.substr(0, type.find(':'));
}

std::string description_of(const CLI::Option& option) {
  const std::string& text = option.get_description();
  const std::string fallback = option.get_default_str();
  const bool is_computed = fallback == "0";  // the text says how
  return fallback.empty() || is_computed ? text : cat(text, " (", fallback, ")");
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  std::string out = app->get_description() + "\n";
  const std::string name = app->get_parent() ? app->get_name() : "";
  bool has_any = false;
  for (const Example& example : examples()) {
    if (example.command != name) continue;
    out += cat(has_any ? "" : "\nExamples:\n", "  ", example.line, "\n      ", example.what, "\n");
    has_any = true;
  }
  return out + "\n";
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string value = value_name(*option);
  return value.empty() ? "" : " " + value;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(description_of(*option), kColumns - column_width_);
}

}  // namespace sluice::cli
