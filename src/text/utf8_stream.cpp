// See utf8_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/utf8_stream.h"

#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Unit unit = next_utf8(rest);
    if (unit.state == Utf8State::incomplete) break;
    if (unit.state == Utf8State::complete) {
      out += rest.substr(0, unit.n_bytes);
    } else {
      out += kReplacement;
    }
    rest.remove_prefix(unit.n_bytes);
  }
  held_ = std::string(rest);
  return out;
}

std::string Utf8Stream::flush() {
  std::string out(held_.empty() ? std::string_view() : kReplacement);
  held_.clear();
  return out;
}

}  // namespace sluice::text
