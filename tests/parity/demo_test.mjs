// The shipped demo models in llama.cpp: both load there; demo-attn gives the same probabilities in both
// engines where it gives the expected answer to held-out questions; demo-hybrid, which sluice does not run
// yet, gives those of transformers there (golden vectors of the very weights in the file). Within a question,
// or in an answer spelled as it never would, demo-attn's probabilities are amplified rounding in either
// engine: it was trained on its answers alone.
//
//   node demo_test.mjs --sluice PROGRAM --work DIR --models DIR --data DIR
// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { kl_divergence, log_sum_exp, rows_of_oracle, rows_of_sluice, summarise } from "./compare.mjs";
import { ask_oracle, has_oracle, run_program } from "./programs.mjs";

const kMeanKl = 1e-3;
const kMaxKl = 5e-2;
const kLogitBound = 2e-3;
const kQuestions = 40; // spread over all kinds

const { values: options } = parseArgs({
  options: { sluice: { type: "string" }, work: { type: "string" }, models: { type: "string" }, data: { type: "string" } },
});
const oracle = join(options.work, "oracle");
const scratch = join(options.work, "demo");
mkdirSync(scratch, { recursive: true });
if (!has_oracle(oracle)) throw new Error(`${oracle} is not complete; run tests/parity/install.sh`);

async function rows_of_llama(model, sequences, kv) {
  const jobs = sequences.map((tokens, i) => ({ model, tokens, kv, threads: 2, out: join(scratch, `${i}.f64`) }));
  const answers = await ask_oracle(oracle, scratch, jobs);
  return answers.map((answer, i) => {
    if (answer.error) throw new Error(`llama.cpp, ${model}: ${answer.error}`);
    return rows_of_oracle(readFileSync(jobs[i].out), answer.positions, answer.vocab);
  });
}

async function compare_attn() {
  const model = join(options.models, "demo-attn.gguf");
  const questions = readFileSync(join(options.data, "questions.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line)).filter((q) => q.check === "exact");
  const every = Math.floor(questions.length / kQuestions);
  const chosen = questions.filter((_, i) => i % every === 0);
  const sequences = [];
  const answer_begins = [];
  const ids_of = async (text) => {
    const out = await run_program(options.sluice, ["tokenize", "-m", model, "-p", text, "--json"]);
    return JSON.parse(out).tokens.map((t) => t.id);
  };
  for (const { prompt, expected } of chosen) {
    sequences.push(await ids_of(prompt + expected));
    answer_begins.push((await ids_of(prompt)).length - 1);
  }
  const theirs = await rows_of_llama(model, sequences, "f16");
  const kls = [];
  for (const [i, tokens] of sequences.entries()) {
    const answer = await run_program(options.sluice, ["logits", "-m", model, "--tokens", tokens.join(","), "--all", "--json"]);
    const ours = rows_of_sluice(JSON.parse(answer), tokens, theirs[i][0].length);
    for (let pos = answer_begins[i]; pos < tokens.length; ++pos) kls.push(kl_divergence(theirs[i][pos], ours[pos]));
  }
  const mean = kls.reduce((a, b) => a + b, 0) / kls.length;
  console.log(`demo-attn: KL over ${kls.length} positions of ${sequences.length} questions: mean ${mean.toExponential(2)}`, summarise(kls));
  if (!(mean <= kMeanKl && Math.max(...kls) <= kMaxKl)) throw new Error(`expected a mean KL of at most ${kMeanKl} and a maximum of ${kMaxKl}`);
}

async function compare_hybrid() {
  const { tokens, positions } = JSON.parse(readFileSync(join(options.data, "demo-hybrid.json"), "utf8"));
  const f32 = join(scratch, "demo-hybrid-f32.gguf");
  await run_program(options.sluice, ["quantize", join(options.models, "demo-hybrid.gguf"), f32, "F32"]);
  const answers = await rows_of_llama(f32, tokens, "f32");
  const bytes = readFileSync(join(options.data, "demo-hybrid.logits.bin"));
  const golden = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  let worst = 0;
  let row = 0;
  tokens.forEach((_, s) => {
    for (const pos of positions[s]) {
      const n_vocab = answers[s][pos].length;
      const logits = Float64Array.from(golden.subarray(row * n_vocab, ++row * n_vocab));
      const norm = log_sum_exp(logits);
      logits.forEach((logit, id) => {
        const difference = Math.abs(logit - norm - answers[s][pos][id]);
        if (!(difference <= worst)) worst = difference;
      });
    }
  });
  console.log(`demo-hybrid: ${row} rows of ${tokens.length} sequences, largest difference from transformers ${worst.toExponential(2)}`);
  if (!(worst <= kLogitBound)) throw new Error(`expected differences of at most ${kLogitBound}`);
}

await compare_attn();
await compare_hybrid();
