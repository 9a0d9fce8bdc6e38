// Which spaces and newlines of a template reach the output. Every expected output was checked
// against Jinja2 3.1 with trim_blocks and lstrip_blocks on, as Hugging Face sets it up.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaWhitespace, DropsTheNewlineAfterABlockButNotAfterOutput) {
  expect_renders({{"{% if true %}\na\n{% endif %}\nb", "a\nb"},
                  {"{{ 1 }}\n{{ 2 }}\n\n{{ 3 }}", "1\n2\n\n3"},
                  {"{% if true %}\n\na{% endif %}", "\na"},
                  {"{% if true %} \na{% endif %}", " \na"},
                  {"{# c #}\na", "a"}});
}

TEST(JinjaWhitespace, DropsSpacesBeforeABlockThatBeginsItsLine) {
  expect_renders({{"  {% if true %}\n  a\n \t{% endif %}\nb", "  a\nb"},
                  {"x  {% if true %}a{% endif %}", "x  a"},
                  {"a\n  {# c #}\nb", "a\nb"},
                  {"  {{ 1 }}", "  1"},
                  {"{% if true %}\n  {% if true %}a{% endif %}{% endif %}", "a"},
                  {"{{ 1 }}  {% if true %}a{% endif %}", "1  a"}});
}

TEST(JinjaWhitespace, MinusTakesAllWhitespaceOnItsSide) {
  expect_renders({{"a \n {%- if true -%} \n b \n {%- endif -%} \n c", "abc"},
                  {"a  {{- 1 -}}  b", "a1b"},
                  {"a {{ 1 -}} \n\n b", "a 1b"},
                  {"a {#- c -#} b", "ab"},
                  {"a\u00a0\u2003{{- 1 -}}\u3000b", "a1b"},
                  {"{{ '  x  ' -}}  y", "  x  y"}});
}

TEST(JinjaWhitespace, PlusKeepsWhatWouldBeDropped) {
  expect_renders({{"  {%+ if true %}a{% endif %}", "  a"},
                  {"{% if true +%}\na{% endif +%}\nb", "\na\nb"},
                  {"{# c +#}\na", "\na"},
                  {"  {#+ c #}a", "  a"}});
}

TEST(JinjaWhitespace, DropsOneNewlineAtTheEnd) {
  expect_renders({{"a\n", "a"}, {"a\n\n", "a\n"}, {"a\r\n", "a"}, {"\n", ""}, {"", ""}});
}

TEST(JinjaWhitespace, TakesEveryNewlineForTheSame) {
  expect_renders({{"a\r\nb\rc\nd", "a\nb\nc\nd"}, {"{% if true %}\r\na{% endif %}", "a"}});
}

TEST(JinjaWhitespace, LeavesRawTextAlone) {
  expect_renders({{"{% raw %}{{ x }} {% y %} {# z #}{% endraw %}", "{{ x }} {% y %} {# z #}"},
                  {"{% raw %}\n a \n {% endraw %}\nb", "\n a \nb"},
                  {"{%- raw -%}  a  {%- endraw -%}  b", "ab"},
                  {"{%raw%}{%endraw%}x", "x"},
                  {"{% raw %}a{% endraw +%}\nb", "a\nb"},
                  {"{% raw %}{% endrawx %}{% endraw %}", "{% endrawx %}"}});
}

TEST(JinjaWhitespace, LeavesSingleBracesAlone) {
  expect_renders({{"{ } {a} % # {", "{ } {a} % # {"}, {"}} %} #}", "}} %} #}"}});
}

}  // namespace
}  // namespace sluice::text::jinja
