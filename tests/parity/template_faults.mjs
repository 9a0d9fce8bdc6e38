// Damaged copies of a template, for template_test.mjs: each has one place that a working comparison
// must notice.

// A tag from its mark to its end, which does not lie inside a string.
const kInside = String.raw`(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"])*?`;
const kCondition = new RegExp(String.raw`(\{%-?\s*(?:el)?if\s)(${kInside})(\s*-?%\})`, "gs");
const kOutput = new RegExp(String.raw`(\{\{-?)(${kInside})(-?\}\})`, "gs");

export function make_faults(template) {
  const line_of = (at) => template.slice(0, at).split("\n").length;
  const replaced = (what, pattern, replacement) =>
    [...template.matchAll(pattern)].map(({ 0: tag, 1: open, 2: body, 3: close, index }) => ({
      name: `${what} in line ${line_of(index)}: ${tag}`,
      template: template.slice(0, index) + open + replacement(body) + close + template.slice(index + tag.length),
    }));
  return [
    ...replaced("a condition is the opposite", kCondition, (body) => `not (${body})`),
    ...replaced("an output is missing", kOutput, () => " '' "),
    { name: "whitespace is kept", template: template.replaceAll("{%-", "{%").replaceAll("-%}", "%}") },
  ].filter((fault) => fault.template !== template);
}
