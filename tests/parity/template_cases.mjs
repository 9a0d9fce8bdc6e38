// Small templates, one construct each, for template_test.mjs. All are rendered with kContext. What
// the reference cannot do, or does in another way than Jinja, is in template_deviations.mjs.

export const kContext = {
  n: 5,
  zero: 0,
  price: 1.5,
  flag: true,
  nothing: null,
  text: "Hello World",
  empty: "",
  spaced: "  two words \n",
  unicode: "Grüße 你好 👋🏽",
  lines: "one\ntwo\n\nthree",
  quotes: "it's \"quoted\" \\ <b>&amp;</b>",
  numbers: [3, 1, 2],
  words: ["pear", "Apple", "fig"],
  mixed: [1, "two", null, true, 2.5, ["x"], { y: 1 }],
  users: [
    { name: "Ann", age: 31, active: true, tags: ["a", "b"] },
    { name: "Bob", age: 25, active: false, tags: [] },
    { name: "Cleo", age: 31, active: true, tags: ["c"] },
  ],
  schema: {
    type: "object",
    properties: { city: { type: "string", description: "Where" }, days: { type: "integer" } },
    required: ["city"],
  },
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello!" },
    { role: "user", content: "Bye" },
  ],
};

const raw = String.raw;

export const kCases = [
  // --- literals and operators
  ["literals", raw`{{ 1 }} {{ 2.5 }} {{ 'single' }} {{ "double" }} {{ true | tojson }} {{ false | tojson }}`],
  ["none in both spellings", raw`{{ 'n' if none is none }} {{ 'n' if None is none }} {{ none | tojson }}`],
  ["true and false in both spellings", raw`{{ (True and true) | tojson }} {{ (False or false) | tojson }}`],
  ["escapes in strings", raw`{{ 'a\nb\tc\\d\'e' }}|{{ "f\"g" }}`],
  ["lists", raw`{% for x in [1, 'a', [2, 3]] %}{{ x | tojson }};{% endfor %}`],
  ["dictionaries", raw`{% set d = {'a': 1, "b": [2], 'c': {'d': none}} %}{{ d | tojson }} {{ d.a }} {{ d['b'][0] }}`],
  ["arithmetic", raw`{{ 7 + 2 }} {{ 7 - 9 }} {{ 7 * 3 }} {{ 7 % 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ (1 + 2) * 3 - 4 }}`],
  ["division gives a float", raw`{{ 7 / 2 }} {{ n / 2 }}`],
  ["floats", raw`{{ 0.5 + 0.25 }} {{ price * 3 }} {{ -price }}`],
  ["joining with ~", raw`{{ 'a' ~ 1 ~ 2.5 ~ text }} {{ n ~ '' }}`],
  ["joining with +", raw`{{ 'a' + text + 'b' }} {{ ([1] + [2, 3]) | tojson }}`],
  ["comparisons", raw`{{ [1 < 2, 2 <= 2, 3 > 4, 4 >= 4, 1 == 1, 'a' != 'b'] | tojson }}`],
  ["in and not in", raw`{{ [1 in numbers, 9 not in numbers, 'ell' in text, 'type' in schema, 'x' not in schema] | tojson }}`],
  ["and, or, not give operands", raw`{{ '' or 'b' }} {{ 'a' and 'b' }} {{ 0 or none or 'z' }} {{ [not '', not (flag and zero)] | tojson }}`],
  ["precedence", raw`{{ 1 + 2 * 3 }} {{ [not 1 == 2, 1 + 1 == 2 and 3 > 2 or false] | tojson }} {{ -n + 1 }}`],
  ["inline if", raw`{{ 'yes' if flag else 'no' }} {{ 'a' if zero else 'b' if flag else 'c' }}|{{ 'x' if zero }}|`],
  ["attributes and items", raw`{{ users[0].name }} {{ users[-1]['age'] }} {{ schema.properties.city.type }} {{ users[0]['tags'][1] }}`],
  ["what is absent prints nothing", raw`[{{ absent }}][{{ schema.absent }}][{{ users[0]['absent'] }}]`],
  ["slices of lists", raw`{{ numbers[1:] | tojson }} {{ numbers[:-1] | tojson }} {{ numbers[::-1] | tojson }} {{ numbers[::2] | tojson }} {{ numbers[-2:] | tojson }} {{ numbers[5:] | tojson }}`],
  ["slices of strings", raw`{{ text[1:4] }} {{ text[:-6] }} {{ text[::-1] }} {{ text[-5:] }} {{ text[0] }}`],
  ["slices with variables", raw`{% set i = 1 %}{{ numbers[i:] | tojson }} {{ messages[i].role }} {{ messages[i - 1]['role'] }}`],
  ["none, true and false inside containers", raw`{{ [none, true, false] | tojson }} {{ mixed | tojson }}`],

  // --- for
  ["for over a list", raw`{% for x in numbers %}{{ x }},{% endfor %}`],
  ["loop variables", raw`{% for x in words %}{{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }}{{ ' first' if loop.first }}{{ ' last' if loop.last }}: {{ x }}
{% endfor %}`],
  ["loop.previtem and loop.nextitem", raw`{% for m in messages %}{{ loop.previtem.role if loop.previtem }}>{{ m.role }}>{{ loop.nextitem.role if loop.nextitem }};{% endfor %}`],
  ["for with several names", raw`{% for k, v in schema.properties.items() %}{{ k }}={{ v.type }};{% endfor %}`],
  ["for over the items filter", raw`{% for k, v in schema | items %}{{ k }}:{{ v | tojson }}
{% endfor %}`],
  ["for over keys", raw`{% for k in schema %}{{ k }} {% endfor %}{% for k in schema.keys() %}{{ k }} {% endfor %}`],
  ["for with if", raw`{% for u in users if u.active %}{{ loop.index }}{{ u.name }}{% if not loop.last %}, {% endif %}{% endfor %}`],
  ["for with else", raw`{% for x in [] %}x{% else %}none{% endfor %} {% for x in users if x.age > 99 %}x{% else %}nobody{% endfor %} {% for x in [1] %}{{ x }}{% else %}none{% endfor %}`],
  ["nested for", raw`{% for u in users %}{{ loop.index }}:{% for t in u.tags %}{{ t }}{{ loop.index }}{% else %}-{% endfor %} {% endfor %}`],
  ["for over range", raw`{% for i in range(3) %}{{ i }}{% endfor %} {% for i in range(2, 5) %}{{ i }}{% endfor %} {% for i in range(5, 0, -2) %}{{ i }}{% endfor %}`],
  ["for over a slice in reverse", raw`{% for m in messages[::-1] %}{{ m.role[0] }}{% endfor %}`],
  ["break and continue", raw`{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}`],
  ["else where no round came to its end", raw`{% for i in range(2) %}{% continue %}{% else %}none{% endfor %} {% for i in range(2) %}{% break %}{% else %}none{% endfor %}`],
  ["names set in a loop stay there", raw`{% set x = 'out' %}{% for i in range(2) %}{% set x = i %}{{ x }}{% endfor %}{{ x }}`],

  // --- if, set, namespace
  ["if, elif, else", raw`{% for i in range(4) %}{% if i == 0 %}zero{% elif i == 1 %}one{% elif i == 2 %}two{% else %}many{% endif %} {% endfor %}`],
  ["nested if", raw`{% if flag %}{% if zero %}a{% else %}{% if n > 4 %}b{% endif %}{% endif %}{% endif %}`],
  ["what counts as true", raw`{% for x in [0, 1, '', 'a', none, [], [0], {}, {'a': 1}, 0.0] %}{{ 'T' if x else 'F' }}{% endfor %}{{ 'T' if absent else 'F' }}`],
  ["set", raw`{% set a = 1 %}{% set b = a + 1 %}{% set a = a + 10 %}{{ a }} {{ b }}`],
  ["set of several names", raw`{% set a, b = 1, 'two' %}{{ b }}{{ a }}`],
  ["set as a block", raw`{% set greeting %}Hi {{ users[0].name }}!{% endset %}[{{ greeting }}] {{ greeting | length }}`],
  ["set inside if reaches out", raw`{% if flag %}{% set inner = 'seen' %}{% endif %}{{ inner }}`],
  ["namespace", raw`{% set ns = namespace(found=false, count=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.found = true %}{% set ns.count = ns.count + 1 %}{% endif %}{% endfor %}{{ ns.found | tojson }} {{ ns.count }}`],
  ["namespace with new attributes", raw`{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.b = ns.a + [2] %}{{ ns.b | tojson }}`],

  // --- macros, call, filter blocks
  ["macro", raw`{% macro tag(name, body) %}<{{ name }}>{{ body }}</{{ name }}>{% endmacro %}{{ tag('b', tag('i', text)) }}`],
  ["macro with defaults and names", raw`{% macro f(a, b='B', c=3) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, c=9) }}{{ f(b='x', a=0) }}`],
  ["macro that calls itself", raw`{% macro show(t) %}{% if t is mapping %}{% for k, v in t | items %}({{ k }} {{ show(v) }}){% endfor %}{% elif t is iterable and t is not string %}{% for x in t %}{{ show(x) }},{% endfor %}{% else %}{{ t }}{% endif %}{% endmacro %}{{ show(schema) }}`],
  ["macro with a loop and whitespace control", raw`{%- macro list(items) -%}
  {%- for x in items -%}
    {{- x -}}
    {%- if not loop.last -%} | {%- endif -%}
  {%- endfor -%}
{%- endmacro -%}
[{{ list(words) }}]`],
  ["call block", raw`{% macro box(title) %}[{{ title }}: {{ caller() }}]{% endmacro %}{% call box('T') %}inside {{ n }}{% endcall %}`],
  ["call block with arguments", raw`{% macro each(items) %}{% for x in items %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) each(words) %}{{ i }}={{ x }};{% endcall %}`],
  ["filter block", raw`{% filter upper %}loud {{ text }}{% endfilter %}`],
  ["generation block", raw`{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.role }};{% endif %}{% endfor %}`],

  // --- whitespace
  ["trim_blocks", "a\n{% if flag %}\nb\n{% endif %}\nc\n"],
  ["lstrip_blocks", "a\n    {% if flag %}\n  b\n    {% endif %}\nc"],
  ["minus on both sides", "a  \n {%- if flag -%} \n b \n {%- endif -%} \n c"],
  ["minus around output", "a  {{- n -}}  b {{ n -}} \n c \n {{- n }} d"],
  ["comments", "a {# gone #} b\n{# a line #}\nc {#- tight -#} d\n  {# indented #}\ne"],
  ["a newline after output stays", "{{ n }}\n{{ n }}\n\n{{ n }}"],
  ["one newline at the end goes", "a\n\n"],
  ["text with braces", "{ a } { { } } % } # } {a} 100%"],
  ["blocks in a line of text", "x {% if flag %} y {% endif %} z\n{% for i in [1, 2] %} {{ i }} {% endfor %}\n"],
  ["deep indentation", "{%- for m in messages %}\n    {%- if m.role == 'user' %}\n        {{- 'U: ' + m.content }}\n    {%- else %}\n        {{- '-' }}\n    {%- endif %}\n{%- endfor %}\n"],

  // --- filters
  ["case filters", raw`{{ text | upper }} {{ text | lower }} {{ 'some words here' | title }} {{ 'hello' | capitalize }}`],
  ["trim", raw`[{{ spaced | trim }}] [{{ '\n x \n' | trim }}]`],
  ["length and count", raw`{{ text | length }} {{ numbers | length }} {{ schema | length }} {{ users[1].tags | length }}`],
  ["first and last", raw`{{ numbers | first }} {{ words | last }} {{ messages | map(attribute='role') | first }}`],
  ["join", raw`{{ words | join }} {{ words | join(', ') }} {{ numbers | join('-') }}`],
  ["default", raw`{{ absent | default('d') }} {{ empty | default('d') }}|{{ empty | default('d', true) }} {{ nothing | default('d', boolean=true) }} {{ text | default('d') }}`],
  ["int and float", raw`{{ '42' | int + 1 }} {{ '3.5' | float + 1 }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 3.9 | int }}`],
  ["string", raw`{{ n | string + '!' }} {{ ((n | string) is string) | tojson }}`],
  ["replace", raw`{{ text | replace('o', '0') }} {{ text | replace('l', 'L', 2) }} {{ quotes | replace('"', "'") }}`],
  ["tojson of everything", raw`{{ schema | tojson }} {{ mixed | tojson }} {{ quotes | tojson }} {{ nothing | tojson }} {{ unicode | tojson }} {{ spaced | tojson }}`],
  ["tojson with indent", raw`{{ schema | tojson(indent=2) }}
{{ mixed | tojson(indent=4) }}`],
  ["map by attribute", raw`{{ users | map(attribute='name') | join(',') }} {{ users | map(attribute='age') | list | tojson }}`],
  ["selectattr and rejectattr", raw`{{ users | selectattr('active') | map(attribute='name') | list | tojson }} {{ users | rejectattr('active') | map(attribute='name') | list | tojson }} {{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') }} {{ messages | rejectattr('role', 'equalto', 'user') | list | length }}`],
  ["list", raw`{{ range(3) | list | tojson }} {{ schema.keys() | list | tojson }}`],
  ["sort and reverse", raw`{{ numbers | sort | tojson }} {{ numbers | reverse | list | tojson }} {{ words | sort | join(' ') }} {{ numbers | sort(reverse=true) | join }} {{ users | sort(attribute='age') | map(attribute='name') | join }}`],
  ["unique", raw`{{ [1, 2, 1, 3, 2] | unique | list | tojson }} {{ users | map(attribute='age') | unique | join(',') }}`],
  ["dictsort", raw`{% for k, v in {'b': 1, 'a': 2, 'C': 0} | dictsort %}{{ k }}{{ v }} {% endfor %}`],
  ["items and dictionary methods", raw`{{ schema.keys() | list | tojson }} {{ schema.get('type') }} {{ schema.get('nope', 'fallback') }} {{ schema.values() | list | length }}`],
  ["abs", raw`{{ -5 | abs }} {{ (2 - n) | abs }} {{ 1.5 | abs }}`],
  ["indent", raw`{{ lines | indent }}|{{ lines | indent(2) }}|{{ lines | indent(2, true) }}`],
  ["chained filters", raw`{{ spaced | trim | upper | replace(' ', '_') | lower }}`],
  ["safe", raw`{{ quotes | safe }}`],

  // --- tests
  ["defined and undefined", raw`{{ [n is defined, absent is defined, absent is undefined, schema.nope is not defined, nothing is defined] | tojson }}`],
  ["tests of kind", raw`{{ [text is string, n is number, n is integer, schema is mapping, numbers is iterable, numbers is mapping, nothing is none, flag is boolean, text is none, n is string] | tojson }}`],
  ["tests of value", raw`{{ [4 is even, 4 is odd, flag is true, flag is false, 'abc' is lower, 'ABC' is upper] | tojson }}`],
  ["tests in conditions", raw`{% if absent is not defined and n is number %}a{% endif %}{% if not text is string or flag is not true %}b{% else %}c{% endif %}`],

  // --- methods
  ["strip", raw`[{{ spaced.strip() }}] [{{ spaced.lstrip() }}] [{{ spaced.rstrip() }}] [{{ '\n\nx\n'.strip('\n') }}]`],
  ["split", raw`{{ 'a,b,,c'.split(',') | tojson }} {{ '  a  b '.split() | tojson }} {{ 'a-b-c'.split('-', 1) | tojson }} {{ text.split('o')[0] }} {{ '<t>x</t>y'.split('</t>')[-1] }}`],
  ["startswith and endswith", raw`{{ [text.startswith('He'), text.endswith('x'), '<think>'.startswith('<') and '</x>'.endswith('>')] | tojson }}`],
  ["upper, lower, title, capitalize", raw`{{ text.upper() }} {{ text.lower() }} {{ 'a b'.title() }} {{ 'ab'.capitalize() }}`],
  ["replace as a method", raw`{{ text.replace('World', 'there') }} {{ 'aaa'.replace('a', 'b', 2) }}`],

  // --- functions
  ["raise_exception that is not reached", raw`{% if zero %}{{ raise_exception('no') }}{% endif %}ok`],
  ["strftime_now", raw`{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%B %d, %Y') }}`],
  ["dict and range as values", raw`{% set r = range(2) %}{% for i in r %}{{ i }}{% endfor %} {{ 'yes' if range is defined }}`],
  ["division of integers gives a float", raw`{{ 4 / 2 }}`],
  ["powers", raw`{{ 2 ** 10 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }}`],
  ["neighbouring strings are one", raw`{{ 'a' "b" 'c' }}`],
  ["a filter applies to the signed number", raw`{{ -5 | abs }} {{ 10 - -5 | abs }}`],
  ["subscripts with a dot", raw`{{ numbers.0 }} {{ users.1.name }}`],
  ["macros see names set after them", raw`{% macro m() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ m() }}`],
  ["spread arguments", raw`{% macro m(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*[1, 2], **{'c': 3}) }}`],
  ["defaults may use other parameters", raw`{% macro m(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m('x') }}`],
  ["a test before an inline if", raw`{{ 'a' if n is defined else 'b' }}`],
  ["map with a default", raw`{{ [{'a': 1}, {}] | map(attribute='a', default=0) | list }} {{ [{'a': {'b': 2}}] | map(attribute='a.b') | list }}`],
  ["tojson with separators and sorted keys", raw`{{ {'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'), sort_keys=true) }}`],
  ["title knows what stands before a word", raw`{{ 'a-b (c) d_e' | title }}`],
  ["unicode", raw`{{ unicode }} {{ unicode | upper | lower }} {{ 'ΟΔΟΣ Straße' | lower | upper | lower }} {{ '日本' + '語' }} {{ unicode[:5] }}`],
];

// What both sides must refuse.
export const kRefused = [
  ["raise_exception", raw`{% if flag %}{{ raise_exception('roles must alternate') }}{% endif %}`],
  ["raise_exception with computed text", raw`{{ raise_exception('no role ' ~ messages[0].role ~ ' in “' ~ text ~ '”') }}`],
  ["call of what is undefined", raw`{{ absent() }}`],
  ["an unknown filter", raw`{{ n | nosuchfilter }}`],
  ["an unknown test", raw`{{ n is nosuchtest }}`],
  ["adding text and number", raw`{{ 'a' + none }}`],
  ["a block without end", raw`{% if flag %}a`],
  ["an end without block", raw`a{% endfor %}`],
  ["an output without end", raw`{{ n `],
];
