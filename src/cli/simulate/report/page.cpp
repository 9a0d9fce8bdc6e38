// See page.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/report/page.h"

#include "base/check.h"
#include "cli/simulate/report/page_text.h"

namespace sluice::cli::report {

namespace {

constexpr std::string_view kMark = "@DOCUMENT@";

// JSON in which nothing can end or comment out the <script> it stands in. All that is replaced
// occurs in JSON inside strings alone, where \u means the same.
std::string script_safe(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view three = json.substr(i, 3);
    if (json[i] == '<') {
      text += "\\u003c";
    } else if (three == "\u2028" || three == "\u2029") {  // ends a line in JavaScript
      text += three == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += json[i];
    }
  }
  return text;
}

}  // namespace

std::string page(std::string_view json) {
  const size_t mark = kPageText.find(kMark);
  CHECK(mark != std::string_view::npos);
  std::string text(kPageText.substr(0, mark));
  text += script_safe(json);
  text += kPageText.substr(mark + kMark.size());
  return text;
}

}  // namespace sluice::cli::report
