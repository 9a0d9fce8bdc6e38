// The template suite: sluice's chat templates against @huggingface/jinja, byte for byte.
//
//   tests/parity/install.sh WORK/oracle          once; brings node and the reference from npm
//   WORK/oracle/node tests/parity/template_test.mjs --render PATH --work WORK [--oracle DIR] [--filter REGEX]
//
// Small templates, one construct each (template_cases.mjs), and long ones in the shape of model
// families (templates/), each with every conversation (template_conversations.mjs). Where one side
// raises, so must the other, with the same message. Where the reference itself is wrong, what Jinja
// says counts (template_deviations.mjs). Last, every long template is damaged in every place
// (template_faults.mjs), and each damage must be seen. Exit code 1 on any failure.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { run_program } from "./programs.mjs";
import { kCases, kContext, kRefused } from "./template_cases.mjs";
import { make_inputs } from "./template_conversations.mjs";
import { kDeviations } from "./template_deviations.mjs";
import { make_faults } from "./template_faults.mjs";

// What the clock shows in strftime_now(): given to sluice as local seconds, to the reference as the
// time of a Date.
const kTime = [2025, 2, 7, 9, 5, 4]; // a Friday in March
const kNow = Date.UTC(...kTime) / 1000;
globalThis.Date = class extends Date {
  constructor(...args) {
    super(...(args.length ? args : kTime));
  }
};

// How sluice's errors quote a raise_exception().
const kRaised = "the template refuses: ";

// One mistake fails many cases.
const kMostShown = 20;

// A subject is a template with the inputs to render it with.
function small_subjects() {
  const inputs = [{ name: "", variables: kContext }];
  const subject = (kind) => (fields) => ({ kind, inputs, ...fields });
  return [
    ...kCases.map(([name, template]) => ({ name, template })).map(subject("construct")),
    ...kRefused.map(([name, template]) => ({ name, template })).map(subject("refusal")),
    ...kDeviations.map(subject("deviation")),
  ];
}

function family_subjects() {
  const folder = join(dirname(fileURLToPath(import.meta.url)), "templates");
  const files = readdirSync(folder).filter((name) => name.endsWith(".jinja"));
  return files.map((file) => {
    const name = file.replace(".jinja", "");
    const template = readFileSync(join(folder, file), "utf8");
    return { kind: "conversation", name, template, inputs: make_inputs(name) };
  });
}

// An answer is one of {output}, {raised} (by the template itself) and {error} (of the engine).
class Raised extends Error {}

// The reference's own raise_exception throws what its other errors are, so another takes its place.
function raise_instead(message) {
  throw new Raised(message);
}

function ask_reference(Template, { template, inputs }) {
  const text = template.replaceAll("raise_exception", raise_instead.name);
  return inputs.map(({ variables }) => {
    try {
      return { output: new Template(text).render({ ...structuredClone(variables), raise_instead }) };
    } catch (error) {
      return error instanceof Raised ? { raised: error.message } : { error: error.message };
    }
  });
}

async function ask_sluice(program, work, subjects) {
  const places = new Map(); // of variables
  const place_of = ({ variables }) => {
    if (!places.has(variables)) places.set(variables, places.size);
    return places.get(variables);
  };
  const templates = subjects.map(({ template, inputs }) => ({ text: template, inputs: inputs.map(place_of) }));
  const file = join(work, "template_jobs.json");
  writeFileSync(file, JSON.stringify({ now: kNow, variables: [...places.keys()], templates }));
  const lines = (await run_program(program, [file])).trimEnd().split("\n");
  return lines.map((line) =>
    JSON.parse(line).map((answer) => {
      const at = answer.error?.indexOf(kRaised) ?? -1;
      return at < 0 ? answer : { raised: answer.error.slice(at + kRaised.length) };
    }),
  );
}

function show(answer) {
  const [[kind, text]] = Object.entries(answer);
  return `${kind} ${JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}...` : text)}`;
}

// Where two texts part, with a little of what is around it.
function difference(expected, got) {
  let at = 0;
  while (at < expected.length && expected[at] === got[at]) ++at;
  const around = (text) => JSON.stringify(text.slice(Math.max(0, at - 40), at + 60));
  return `differs at character ${at}: expected ${around(expected)}, got ${around(got)}`;
}

// What is wrong with an answer, or nothing. Engines have their own words for their errors.
function compare(expected, got) {
  const [kind] = Object.keys(expected);
  if (!(kind in got)) return `expected ${show(expected)}, got ${show(got)}`;
  if (kind === "error" || expected[kind] === got[kind]) return null;
  return difference(expected[kind], got[kind]);
}

function judge({ kind, jinja, huggingface }, got, reference) {
  if (kind === "construct" && !("output" in reference)) return `the reference cannot render it: ${show(reference)}`;
  if (kind === "refusal" && "output" in reference) return `the reference does not refuse it: ${show(reference)}`;
  if (kind !== "deviation") return compare(reference, got);
  // An error of the engine is expected where there is no output.
  const as_answer = (output) => (output === null ? { error: "" } : { output });
  const change = compare(as_answer(huggingface), reference);
  return change ? `the reference has changed: ${change}` : compare(as_answer(jinja), got);
}

async function compare_subjects(Template, ask, subjects, failures) {
  const counts = {};
  const answers = await ask(subjects);
  subjects.forEach((subject, i) => {
    ask_reference(Template, subject).forEach((reference, j) => {
      const fault = judge(subject, answers[i][j], reference);
      if (fault) failures.push(`${subject.kind} ${subject.name} ${subject.inputs[j].name}: ${fault}`);
      const kind = `${subject.kind}: ${Object.keys(reference)[0]}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
    });
  });
  for (const [kind, n] of Object.entries(counts)) console.log(`${String(n).padStart(6)} x ${kind}`);
}

// Lets sluice render damaged templates; the comparison must fail for each, or it would not have
// seen a mistake of sluice's in that place.
async function compare_faults(Template, ask, family, failures) {
  const faults = make_faults(family.template);
  const expected = ask_reference(Template, family);
  const answers = await ask(faults.map(({ template }) => ({ template, inputs: family.inputs })));
  faults.forEach(({ name }, i) => {
    const is_seen = expected.some((reference, j) => judge(family, answers[i][j], reference));
    if (!is_seen) failures.push(`fault ${family.name}: no conversation shows that ${name}`);
  });
  return faults.length;
}

async function main() {
  const { values: options } = parseArgs({
    options: { render: { type: "string" }, work: { type: "string" }, oracle: { type: "string" }, filter: { type: "string" } },
  });
  if (!options.render || !options.work) throw new Error("usage: template_test.mjs --render PATH --work WORK");
  mkdirSync(options.work, { recursive: true });
  const oracle = resolve(options.oracle ?? join(options.work, "oracle"));
  const { Template } = createRequire(join(oracle, "package.json"))("@huggingface/jinja");
  const ask = (subjects) => ask_sluice(resolve(options.render), options.work, subjects);
  const filter = new RegExp(options.filter ?? "");
  const is_chosen = ({ kind, name }) => filter.test(`${kind} ${name}`);

  const failures = [];
  const families = family_subjects().filter(is_chosen);
  const subjects = [...small_subjects().filter(is_chosen), ...families];
  if (subjects.length === 0) failures.push(`no template matches ${options.filter}`);
  await compare_subjects(Template, ask, subjects, failures);
  let n_faults = 0;
  for (const family of families) n_faults += await compare_faults(Template, ask, family, failures);
  console.log(`${String(n_faults).padStart(6)} x fault`);

  for (const failure of failures.slice(0, kMostShown)) console.log(`FAILED ${failure}`);
  console.log(`${failures.length} failures`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}

await main();
