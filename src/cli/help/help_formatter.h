// The help of the program and of its commands: what it does, examples, then the flags in groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

// What it does, and its default where the text does not say it.
std::string description_of(const CLI::Option& option);

// "N", "NUMBER", "TEXT" or the option's own word; empty: it takes no value.
std::string value_name(const CLI::Option& option);

}  // namespace sluice::cli
