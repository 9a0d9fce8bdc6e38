// The template suite: sluice's Jinja interpreter against @huggingface/jinja, byte for byte.
//
//   tests/parity/install.sh WORK/oracle          once; brings node and the reference from npm
//   WORK/oracle/node tests/parity/template_test.mjs --render PATH --work WORK
//       [--oracle DIR] [--filter REGEX]
//
// Three kinds of cases: small templates, one construct each (template_cases.mjs); the long ones of
// templates/ with every conversation (template_conversations.mjs); and constructs in which the
// reference deviates from Jinja, with the result that Jinja gives (template_deviations.mjs). Where
// the reference raises, so must sluice, with the same message. Exit code 1 on any failure.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { run_program } from "./programs.mjs";
import { kCases, kContext } from "./template_cases.mjs";
import { kConversations } from "./template_conversations.mjs";
import { kDeviations, kRefused } from "./template_deviations.mjs";

// The time for strftime_now: given to sluice as local seconds, and to the reference as the time its
// clock shows.
const kTime = [2025, 2, 7, 9, 5, 4]; // a Friday in March
const kNow = Date.UTC(...kTime) / 1000;
globalThis.Date = class extends Date {
  constructor(...args) {
    super(...(args.length ? args : kTime));
  }
};

// How sluice's errors begin to quote a raise_exception().
const kRaised = "the template refuses: ";

// One mistake fails many cases.
const kMostShown = 20;

const kTemplatesDir = join(dirname(fileURLToPath(import.meta.url)), "templates");

function small_cases() {
  const job = (kind) => ([name, template, expected]) => ({ kind, name: `${kind}: ${name}`, template, expected, variables: kContext });
  return [
    ...kCases.map(job("construct")),
    ...kDeviations.map(job("deviation")),
    ...kRefused.map(job("refused")),
  ];
}

function long_cases() {
  const cases = [];
  for (const file of readdirSync(kTemplatesDir).filter((name) => name.endsWith(".jinja"))) {
    const family = file.replace(".jinja", "");
    const template = readFileSync(join(kTemplatesDir, file), "utf8");
    for (const conversation of kConversations) {
      if (conversation.only && !conversation.only.includes(family)) continue;
      for (const add_generation_prompt of [true, false]) {
        for (const enable_thinking of [undefined, true, false]) {
          const variables = {
            messages: conversation.messages,
            tools: conversation.tools ?? null,
            add_generation_prompt,
            bos_token: "<s>",
            eos_token: "</s>",
            ...conversation.variables,
          };
          if (enable_thinking !== undefined) variables.enable_thinking = enable_thinking;
          const name = `${family}: ${conversation.name}, prompt ${add_generation_prompt}, thinking ${enable_thinking}`;
          cases.push({ kind: "conversation", name, template, variables });
        }
      }
    }
  }
  return cases;
}

function ask_reference(Template, { template, variables }) {
  try {
    return { output: new Template(template).render(structuredClone(variables)) };
  } catch (error) {
    return { error: error.message };
  }
}

async function ask_sluice(program, work, cases) {
  const file = join(work, "template_jobs.json");
  writeFileSync(file, JSON.stringify(cases.map(({ template, variables }) => ({ template, variables, now: kNow }))));
  return JSON.parse(await run_program(program, [file]));
}

const shorten = (text) => (text.length > 300 ? `${text.slice(0, 300)}...` : text);
const show = (answer) => ("output" in answer ? shorten(JSON.stringify(answer.output)) : `the error: ${answer.error}`);

// Where two texts part, with a little of what is around it.
function difference(expected, got) {
  let at = 0;
  while (at < expected.length && expected[at] === got[at]) ++at;
  const around = (text) => JSON.stringify(text.slice(Math.max(0, at - 40), at + 60));
  return `differs at character ${at}: expected ${around(expected)}, got ${around(got)}`;
}

// What is wrong with an answer, or nothing.
function judge({ kind, expected }, ours, reference) {
  if (kind === "refused") {
    return ours.error?.includes(expected) ? null : `expected an error with "${expected}", got ${show(ours)}`;
  }
  if (kind === "deviation") {
    if (reference.output === expected) return "the reference no longer deviates; move it to template_cases.mjs";
    return ours.output === expected ? null : `expected ${JSON.stringify(expected)}, got ${show(ours)}`;
  }
  if (kind === "construct" && !("output" in reference)) return `the reference cannot render it: ${reference.error}`;
  if ("error" in reference) {
    // What the template raises has its own words on both sides; what an engine refuses has not.
    const same = ours.error?.includes(kRaised) ? ours.error.includes(reference.error) : "error" in ours;
    return same ? null : `the reference raises "${reference.error}", got ${show(ours)}`;
  }
  if (!("output" in ours)) return `expected ${show(reference)}, got ${show(ours)}`;
  return ours.output === reference.output ? null : difference(reference.output, ours.output);
}

async function main() {
  const { values: options } = parseArgs({
    options: { render: { type: "string" }, work: { type: "string" }, oracle: { type: "string" }, filter: { type: "string" } },
  });
  if (!options.render || !options.work) throw new Error("usage: template_test.mjs --render PATH --work WORK");
  mkdirSync(options.work, { recursive: true });
  const oracle = resolve(options.oracle ?? join(options.work, "oracle"));
  const { Template } = createRequire(join(oracle, "package.json"))("@huggingface/jinja");

  const filter = new RegExp(options.filter ?? "");
  const cases = [...small_cases(), ...long_cases()].filter(({ name }) => filter.test(name));
  const answers = await ask_sluice(resolve(options.render), options.work, cases);
  const counts = {};
  let n_failed = 0;
  cases.forEach((test, i) => {
    const reference = ask_reference(Template, test);
    const fault = judge(test, answers[i], reference);
    const kind = test.kind === "conversation" && "error" in reference ? "conversation that is refused" : test.kind;
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (!fault) return;
    if (++n_failed <= kMostShown) console.log(`FAILED ${test.name}: ${fault}`);
  });
  for (const [kind, n] of Object.entries(counts)) console.log(`${String(n).padStart(5)} x ${kind}`);
  console.log(`${cases.length - n_failed} passed, ${n_failed} failed`);
  if (n_failed > 0 || cases.length === 0) process.exitCode = 1;
}

await main();
