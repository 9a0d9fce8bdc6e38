// Small parts of PTX's text: what parse.cpp cuts it into.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::emulated_gpu {

[[noreturn]] inline void refuse(int line, std::string_view what, std::string_view text) {
  throw std::runtime_error("PTX line " + std::to_string(line) + ": " + std::string(what) + ": " +
                           std::string(text));
}

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

inline std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

// At commas that stand in no brackets.
inline std::vector<std::string_view> split_operands(std::string_view s) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i == s.size() || (s[i] == ',' && depth == 0)) {
      const std::string_view one = trimmed(s.substr(from, i - from));
      if (!one.empty()) out.push_back(one);
      from = i + 1;
    } else if (s[i] == '{' || s[i] == '[') {
      ++depth;
    } else if (s[i] == '}' || s[i] == ']') {
      --depth;
    }
  }
  return out;
}

inline std::vector<std::string_view> split(std::string_view s, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t i = s.find(at);
    out.push_back(trimmed(s.substr(0, i)));
    if (i == std::string_view::npos) return out;
    s.remove_prefix(i + 1);
  }
}

inline int bytes_of(std::string_view type) {
  const size_t digit = type.find_first_of("0123456789");
  return digit == std::string_view::npos ? 0 : std::stoi(std::string(type.substr(digit))) / 8;
}

inline int rounded(int n, int by) { return (n + by - 1) / by * by; }

struct Variable {
  std::string name;
  int align = 1, n_bytes = 0, element = 1;
};

// ".align 8 .b8 name[200]"
inline Variable variable_of(std::string_view text, int line) {
  Variable out;
  std::string_view rest = trimmed(text);
  while (!rest.empty() && rest.front() == '.') {
    size_t end = rest.find_first_of(" \t\n");
    const std::string_view word = rest.substr(0, end);
    rest = trimmed(rest.substr(std::min(end, rest.size())));
    if (word == ".align") {
      end = rest.find_first_of(" \t\n");
      out.align = std::stoi(std::string(rest.substr(0, end)));
      rest = trimmed(rest.substr(end));
    } else if (bytes_of(word) > 0) {
      out.element = bytes_of(word);
      out.align = std::max(out.align, out.element);
    }
  }
  const size_t bracket = rest.find('[');
  out.name = std::string(trimmed(rest.substr(0, bracket)));
  if (out.name.empty()) refuse(line, "a variable without a name", text);
  int n = 1;
  if (bracket != std::string_view::npos) {
    const std::string_view count = trimmed(rest.substr(bracket + 1, rest.find(']') - bracket - 1));
    n = count.empty() ? 0 : std::stoi(std::string(count));
  }
  out.n_bytes = n * out.element;
  return out;
}

}  // namespace sluice::emulated_gpu
