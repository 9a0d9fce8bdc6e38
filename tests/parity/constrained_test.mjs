// Constrained answers of models: random schemas, each answered by `sluice run --json-schema` with a
// random-weight model, all architectures in turn. Every answer must have come to its end, and must
// be valid for ajv and JSON for nlohmann-json.
//
//   ORACLE/node tests/parity/constrained_test.mjs --sluice PATH --generate PATH --work WORK
//       [--oracle DIR] [--schemas N] [--first SEED]
//
// Exit code 1 on any failure.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { few_experts, kArchitectures } from "./cases.mjs";
import { parallel, run_program } from "./programs.mjs";
import { generate, SchemaJudge } from "./schema_judge.mjs";

const kParallel = 2;

// Random weights find no end by themselves: what closes a string, a list or an object gets more
// weight, and so do the letters that some of the patterns wait for.
const kBias = { '"': 5, "]": 4, "}": 4, f: 5, o: 5, 1: 5 };
const kSampling = ["--temp", "1", "--top-k", "0", "--top-p", "1", "--min-p", "0"];
const kContext = 16384;

async function make_models(sluice, folder) {
  const width = ["--layers", "2", "--d-model", "64", "--d-ff", "64", "--heads", "2"];
  const weights = ["--std", "0.1", "--type", "F32"];
  const models = [];
  for (const arch of kArchitectures) {
    const path = join(folder, `${arch}.gguf`);
    const size = [...width, ...few_experts(arch), ...weights];
    await run_program(sluice, ["synth", path, "--arch", arch, ...size]);
    models.push(path);
  }
  return models;
}

// The answer's JSON object, as the program prints it.
async function ask(sluice, model, schema_file, seed) {
  const bias = Object.entries(kBias).flatMap(([byte, amount]) => [
    "--logit-bias",
    `${byte.charCodeAt(0)}+${amount}`,
  ]);
  const flags = ["--raw", "-p", `${seed}: `, "--json-schema", `@${schema_file}`, "--json"];
  const limits = ["--seed", String(seed), "-c", String(kContext), "-t", "1"];
  const args = ["run", "-m", model, ...flags, ...limits, ...kSampling, ...bias];
  return JSON.parse(await run_program(sluice, args));
}

const { values: options } = parseArgs({
  options: {
    sluice: { type: "string" },
    generate: { type: "string" },
    work: { type: "string" },
    oracle: { type: "string" },
    schemas: { type: "string", default: "500" },
    first: { type: "string", default: "0" },
  },
});
const sluice = resolve(options.sluice);
const folder = resolve(options.work, "constrained");
mkdirSync(folder, { recursive: true });
const models = await make_models(sluice, folder);
const judge = new SchemaJudge(options.oracle ?? join(options.work, "oracle"));
const texts = [];
let n_tokens = 0;

const lines = generate(options.generate, options.schemas, 1, options.first);
await parallel(lines, kParallel, async ({ seed, schema }) => {
  const arch = kArchitectures[seed % kArchitectures.length];
  const schema_file = join(folder, `${seed}.json`);
  writeFileSync(schema_file, JSON.stringify(schema));
  try {
    const answer = await ask(sluice, models[seed % models.length], schema_file, seed);
    n_tokens += answer.tokens.length;
    if (answer.stop_reason !== "end_of_text")
      throw new Error(`no end, but ${answer.stop_reason}: ${answer.text.slice(0, 500)}`);
    texts.push(answer.text);
    judge.judge(`seed ${seed}, ${arch}`, seed, schema, answer.text);
  } catch (error) {
    judge.failures.push(`seed ${seed}, ${arch}: ${error.message}`);
  }
});

const accepted = spawnSync(resolve(options.generate), ["--accept"], {
  input: texts.map((text) => `${JSON.stringify(text)}\n`).join(""),
  encoding: "utf8",
});
if (accepted.status !== 0) judge.failures.push(`nlohmann-json refuses ${accepted.stderr}`);
console.log(`${n_tokens} tokens of ${models.length} models; ${accepted.stdout.trim()}`);
const code = judge.finish(Number(options.schemas));
if (code === 0) rmSync(folder, { recursive: true });
process.exit(code);
