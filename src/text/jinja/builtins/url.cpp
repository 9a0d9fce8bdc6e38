// See url.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/url.h"

#include "text/jinja/values/print.h"

namespace sluice::text::jinja {
namespace {

bool is_plain(char c, bool keeps_slash) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~' || (c == '/' && keeps_slash);
}

void add_query_part(TextBuilder& out, Value value) {
  const std::string_view text = to_text(out.runtime(), value).as_string();
  out.runtime().expect_room(3 * text.size());
  std::string part;
  for (const char c : text) part += c == ' ' ? "+" : url_quoted({&c, 1}, false);
  out.add(part);
}

}  // namespace

std::string url_quoted(std::string_view text, bool keeps_slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string quoted;
  for (const char c : text) {
    if (is_plain(c, keeps_slash)) {
      quoted += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      quoted += {'%', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
  }
  return quoted;
}

Value url_query(Runtime& runtime, Value pairs) {
  TextBuilder out(runtime);
  const auto add = [&](Value key, Value value) {
    if (out.size() > 0) out.add('&');
    add_query_part(out, key);
    out.add('=');
    add_query_part(out, value);
  };
  if (pairs.is(Kind::dict)) {
    for (const auto& [key, value] : pairs.as_dict().entries()) add(key, value);
    return out.finish();
  }
  for (const Value pair : pairs.as_list().items) {
    if (!pair.is_sequence() || pair.as_list().items.size() != 2) {
      runtime.fail_kind("filter 'urlencode': each element", "a pair", pair);
    }
    add(pair.as_list().items[0], pair.as_list().items[1]);
  }
  return out.finish();
}

}  // namespace sluice::text::jinja
