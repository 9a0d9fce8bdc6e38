// See terminal_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/terminal_text.h"

#include <cstdio>

#include "text/utf8.h"

namespace sluice::cli {
namespace {

std::string_view next_character(std::string_view text) {
  return text.substr(0, text::next_utf8(text).n_bytes);
}

}  // namespace

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f ||
         (first == 0xc2 && character.size() == 2 && character[1] < '\xa0');
}

std::string harmless(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view c = next_character(text);
    if (!is_control(c) || c == "\n" || c == "\t") out += c;
    text.remove_prefix(c.size());
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view c = next_character(text);
    const bool is_shown = text::valid_utf8_length(c) == c.size() && !is_control(c);
    out += is_shown ? c : "?";
    text.remove_prefix(c.size());
  }
  return out;
}

void print_error(std::string_view text) {
  std::fprintf(stderr, "sluice: error: %s\n", one_line(text).c_str());
}

void print_warning(std::string_view text) {
  std::fprintf(stderr, "sluice: warning: %s\n", one_line(text).c_str());
}

void print_note(std::string_view text) {
  std::fprintf(stderr, "sluice: note: %s\n", one_line(text).c_str());
}

}  // namespace sluice::cli
