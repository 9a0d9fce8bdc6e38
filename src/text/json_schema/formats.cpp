// The formats of JSON schema as patterns. Each describes a part of what the format allows, such
// that every validator accepts it. Declared in regex.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/json_schema/regex.h"

namespace sluice::text::grammar {
namespace {

struct Named {
  std::string_view name;
  std::string_view pattern;
};

// In <> further down. They may use those above them.
constexpr std::array kParts = {
    // Days by month; the 29th of February in leap years only.
    Named{"days",
          "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)"
          "|02-(?:0[1-9]|1\\d|2[0-8]))"},
    Named{"leap", "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"},
    Named{"date", "(?:\\d{4}-<days>|<leap>-02-29)"},
    Named{"minute", "(?:[01]\\d|2[0-3]):[0-5]\\d"},
    Named{"time", "<minute>:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-]<minute>)"},
    Named{"n", "\\d{1,4}"},
    Named{"calendar", "(?:<n>Y(?:<n>M(?:<n>D)?)?|<n>M(?:<n>D)?|<n>D)"},
    Named{"clock", "T(?:<n>H(?:<n>M(?:<n>S)?)?|<n>M(?:<n>S)?|<n>S)"},
    Named{"label", "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"},
    Named{"user", "[A-Za-z0-9_+-]"},
    Named{"byte", "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"},
    Named{"h", "[0-9A-Fa-f]{1,4}"},
    Named{"hex", "[0-9a-fA-F]"},
    Named{"b64", "[A-Za-z0-9+/]"},
};

constexpr std::array kFormats = {
    Named{"date", "<date>"},
    Named{"time", "<time>"},
    Named{"date-time", "<date>T<time>"},
    Named{"duration", "P(?:<n>W|<calendar>(?:<clock>)?|<clock>)"},
    Named{"uuid", "<hex>{8}-<hex>{4}-<hex>{4}-<hex>{4}-<hex>{12}"},
    Named{"email", "<user>{1,32}(?:\\.<user>{1,16}){0,2}@<label>(?:\\.<label>){1,2}"},
    Named{"hostname", "<label>(?:\\.<label>){0,2}"},
    Named{"ipv4", "(?:<byte>\\.){3}<byte>"},
    Named{"ipv6", "(?:<h>:){7}<h>|(?:<h>:){1,6}:<h>|(?:<h>:){1,7}:|::(?:<h>:){0,5}<h>|::"},
    Named{"uri",
          "https?://<label>(?:\\.<label>){0,2}(?::[1-9]\\d{0,3})?(?:/[A-Za-z0-9._~-]{0,64}){0,8}"
          "(?:\\?[A-Za-z0-9._~=&-]{0,64})?(?:#[A-Za-z0-9._~-]{0,32})?"},
    Named{"json-pointer", "(?:/[A-Za-z0-9._-]{0,64}){0,16}"},
    Named{"byte", "(?:<b64>{4})*(?:<b64>{2}==|<b64>{3}=)?"},
};

}  // namespace

std::string pattern_of_format(std::string_view format) {
  const auto found = std::ranges::find(kFormats, format, &Named::name);
  if (found == kFormats.end()) return "";
  std::string pattern = cat("^(?:", found->pattern, ")$");
  for (size_t i = kParts.size(); i-- > 0;) {
    const std::string name = cat("<", kParts[i].name, ">");
    for (size_t at = pattern.find(name); at != std::string::npos; at = pattern.find(name, at)) {
      pattern.replace(at, name.size(), kParts[i].pattern);
    }
  }
  return pattern;
}

std::string known_formats() {
  std::string out;
  for (const Named& format : kFormats) {
    if (!out.empty()) out += ", ";
    out += format.name;
  }
  return out;
}

}  // namespace sluice::text::grammar
