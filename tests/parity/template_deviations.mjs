// Where the reference renders something else than Jinja2 3.1 (on Python 3.11, set up as Hugging
// Face's transformers does), or renders what Jinja2 refuses; for template_test.mjs, with the
// kContext of template_cases.mjs. sluice must do as `jinja` says, and the reference as `huggingface`
// says: when it changes, the case leaves this list. Null: it is refused.
//
// What the reference does not know at all (`with`, `raw`, `loop.cycle`, map by filter, ...) cannot be
// compared; the unit tests of the interpreter hold what Jinja2 renders there.

const raw = String.raw;

export const kDeviations = [
  {
    name: "true, false and none print as JavaScript's words, or nothing",
    template: raw`{{ flag }} {{ 1 == 2 }} {{ nothing }}.`,
    jinja: "True False None.",
    huggingface: "true false .",
  },
  {
    name: "lists and dictionaries print as JSON",
    template: raw`{{ mixed }} {{ {'a': "it's", 'b': none} }}`,
    jinja: `[1, 'two', None, True, 2.5, ['x'], {'y': 1}] {'a': "it's", 'b': None}`,
    huggingface: `[1, "two", null, true, 2.5, ["x"], {"y": 1}] {"a": "it's", "b": null}`,
  },
  {
    name: "whole floats lose their point in JSON",
    template: raw`{{ 2.0 | tojson }}`,
    jinja: "2.0",
    huggingface: "2",
  },
  {
    name: "empty lists and dictionaries are opened by an indent",
    template: raw`{{ {'a': [], 'b': {}} | tojson(indent=2) }}`,
    jinja: '{\n  "a": [],\n  "b": {}\n}',
    huggingface: '{\n  "a": [\n    \n  ],\n  "b": {\n  }\n}',
  },
  {
    name: "equal lists and dictionaries are not equal",
    template: raw`{{ ([1] == [1]) | tojson }} {{ ({'a': 1} == {'a': 1}) | tojson }}`,
    jinja: "true true",
    huggingface: "false false",
  },
  {
    name: "the text of a round is lost when it ends with break or continue",
    template: raw`{% for i in range(3) %}{{ i }}{% if i == 1 %}{% continue %}{% endif %}{% if i == 2 %}{% break %}{% endif %}{% endfor %}`,
    jinja: "012",
    huggingface: "0",
  },
  {
    name: "names set inside a captured block leave it",
    template: raw`{% set x %}{% set y = 1 %}{% endset %}[{{ y }}]`,
    jinja: "[]",
    huggingface: "[1]",
  },
  {
    name: "macros see the names around their call",
    template: raw`{% macro m() %}[{{ i }}]{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}`,
    jinja: "[]",
    huggingface: "[1]",
  },
  {
    name: "capitalize does not lower the rest",
    template: raw`{{ 'hELLO' | capitalize }}`,
    jinja: "Hello",
    huggingface: "HELLO",
  },
  {
    name: "join ignores the attribute",
    template: raw`{{ users | join(',', attribute='name') }}`,
    jinja: "Ann,Bob,Cleo",
    huggingface: "[object Map],[object Map],[object Map]",
  },
  {
    name: "int ignores the base",
    template: raw`{{ 'ff' | int(0, 16) }}`,
    jinja: "255",
    huggingface: "0",
  },
  {
    name: "strip ignores the characters",
    template: raw`{{ 'xxaxx'.lstrip('x') }} {{ 'xxaxx'.rstrip('x') }} {{ 'xyaxy'.strip('yx') }}`,
    jinja: "axx xxa a",
    huggingface: "xxaxx xxaxx xyaxy",
  },
  {
    name: "a character beyond U+FFFF is two",
    template: raw`{{ '👋!' | length }} {{ '👋!'[1] }}`,
    jinja: "2 !",
    huggingface: "3 \udc4b",
  },
  {
    name: "what is undefined has attributes",
    template: raw`[{{ absent.x }}]`,
    jinja: null,
    huggingface: "[]",
  },
];
