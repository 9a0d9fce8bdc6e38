// sluice perplexity against llama.cpp's definition, computed here from llama.cpp's own
// full-vocabulary log-probabilities: the text in chunks of the context, BOS in front of each where
// the model wants one, and the second half of a chunk scored.
//
//   WORK/oracle/node tests/parity/perplexity_test.mjs --sluice PATH --work WORK [--oracle DIR]
//
// Exit code 1 on any failure.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { few_experts, kArchitectures } from "./cases.mjs";
import { rows_of_oracle } from "./compare.mjs";
import { read_gguf, value_u32, write_gguf } from "./gguf_edit.mjs";
import { ask_oracle, run_program } from "./programs.mjs";

const kContexts = [64, 128];
const kTolerance = 1e-4; // relative: float32 sums in another order, over four decimal places
const kBos = 256;
const kLine = "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.\n你好，世界! 3.14 <|im_end|>\n";
const kText = kLine.repeat(4);

const value_true = { type: 7, raw: Buffer.from([1]) };

const { values: options } = parseArgs({
  options: { sluice: { type: "string" }, work: { type: "string" }, oracle: { type: "string" } },
});
const sluice = resolve(options.sluice);
const folder = resolve(options.work, "perplexity");
const oracle_dir = resolve(options.oracle ?? join(options.work, "oracle"));
const text_file = join(folder, "text");

// {name, model, bos}: each architecture as synth writes it, and once more with a BOS.
async function make_models() {
  const models = [];
  for (const arch of kArchitectures) {
    const plain = join(folder, `${arch}.gguf`);
    // Of four layers one attends in hybrids, and llama.cpp stops at models without any.
    const layers = arch.startsWith("qwen35") || arch === "qwen3next" ? "4" : "2";
    const size = ["--layers", layers, ...few_experts(arch), "--std", "0.05"];
    await run_program(sluice, ["synth", plain, "--arch", arch, "--type", "F32", ...size]);
    const gguf = read_gguf(plain);
    gguf.keys.set("tokenizer.ggml.add_bos_token", value_true);
    gguf.keys.set("tokenizer.ggml.bos_token_id", value_u32(kBos));
    const with_bos = join(folder, `${arch}-bos.gguf`);
    write_gguf(with_bos, gguf);
    models.push({ name: arch, model: plain, bos: false });
    models.push({ name: `${arch}, bos`, model: with_bos, bos: true });
  }
  return models;
}

// The text's tokens, cut into whole chunks: what to compute, and what to find in it.
function chunks_of(tokens, n_ctx, bos) {
  const chunks = [];
  for (let at = 0; at + n_ctx <= tokens.length; at += n_ctx) {
    const targets = tokens.slice(at, at + n_ctx);
    chunks.push({ tokens: bos ? [kBos, ...targets.slice(1)] : targets, targets });
  }
  return chunks;
}

// -log p of every scored token.
function losses_of(chunks) {
  return chunks.flatMap(({ targets, out, answer }) => {
    if (answer.error) throw new Error(`llama.cpp: ${answer.error}`);
    const rows = rows_of_oracle(readFileSync(out), targets.length, answer.vocab);
    const scored = [];
    for (let pos = targets.length >> 1; pos + 1 < targets.length; ++pos)
      scored.push(-rows[pos][targets[pos + 1]]);
    return scored;
  });
}

function summary_of(losses) {
  const mean = losses.reduce((a, b) => a + b, 0) / losses.length;
  const variance = losses.reduce((a, b) => a + (b - mean) ** 2, 0) / losses.length;
  const perplexity = Math.exp(mean);
  return { perplexity, error: perplexity * Math.sqrt(variance / (losses.length - 1)) };
}

async function compare({ name, model, n_ctx, chunks }) {
  const losses = losses_of(chunks);
  const expected = summary_of(losses);
  const flags = ["-c", String(n_ctx), "-ctk", "f32", "-ctv", "f32", "--json"];
  const args = ["perplexity", "-m", model, "-f", text_file, ...flags];
  const got = JSON.parse(await run_program(sluice, args));
  const failures = ["perplexity", "error"]
    .filter((key) => !(Math.abs(got[key] / expected[key] - 1) <= kTolerance))
    .map((key) => `${key} ${got[key]}, expected ${expected[key]} within ${kTolerance}`);
  if (got.n_scored !== losses.length || got.n_chunks !== chunks.length)
    failures.push(
      `${got.n_scored} tokens in ${got.n_chunks} chunks, ` +
        `expected ${losses.length} in ${chunks.length}`,
    );
  const difference = Math.abs(got.perplexity / expected.perplexity - 1).toExponential(1);
  console.log(
    `${failures.length ? "FAILED" : "ok    "} ${name}, -c ${n_ctx}: ${got.perplexity.toFixed(4)} ` +
      `+/- ${got.error.toFixed(4)} over ${got.n_scored}, off by ${difference}`,
  );
  for (const failure of failures) console.error(`  ${failure}`);
  return failures.length;
}

mkdirSync(folder, { recursive: true });
writeFileSync(text_file, kText);
const cases = [];
for (const { name, model, bos } of await make_models()) {
  const flags = ["-m", model, "-f", text_file, "--no-special", "--json"];
  const { ids } = JSON.parse(await run_program(sluice, ["tokenize", ...flags]));
  for (const n_ctx of kContexts)
    cases.push({ name, model, n_ctx, chunks: chunks_of(ids, n_ctx, bos) });
}
// All in one: llama.cpp takes longer to start than to answer.
const jobs = cases.flatMap(({ model, chunks }) => chunks.map((chunk) => ({ model, chunk })));
jobs.forEach(({ chunk }, i) => (chunk.out = join(folder, `${i}.f64`)));
const answers = await ask_oracle(
  oracle_dir,
  folder,
  jobs.map(({ model, chunk }) => ({ model, tokens: chunk.tokens, out: chunk.out, kv: "f32" })),
);
jobs.forEach(({ chunk }, i) => (chunk.answer = answers[i]));
let n_failed = 0;
for (const test of cases) n_failed += await compare(test);
if (n_failed === 0) rmSync(folder, { recursive: true });
process.exit(n_failed === 0 ? 0 : 1);
