// Golden vectors of transformers against an engine that reads the exported file: llama.cpp (through
// node-llama-cpp) or sluice. Log-probabilities are compared, which are logits without the constant
// that no one can see.
//
//   ORACLE/node tools/demo_model/compare_logits.mjs --golden BASE --model F32.gguf --oracle ORACLE [--sluice PROGRAM]
//
// BASE.json and BASE.logits.bin come from finish.py. With --sluice that program is asked, else
// llama.cpp, which rounds activations where weights are BF16: give it a file in F32
// (`sluice quantize IN OUT F32`). Exit code 1 above the bound.
// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { log_sum_exp, rows_of_oracle, rows_of_sluice } from "../../tests/parity/compare.mjs";
import { ask_oracle, run_program } from "../../tests/parity/programs.mjs";

const kBound = 2e-3;

// [{tokens, positions, rows}], rows as log-probabilities.
function read_golden(base) {
  const { tokens, positions } = JSON.parse(readFileSync(`${base}.json`, "utf8"));
  const bytes = readFileSync(`${base}.logits.bin`);
  const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const n_rows = positions.flat().length;
  const n_vocab = all.length / n_rows;
  let row = 0;
  return tokens.map((ids, i) => ({
    tokens: ids,
    positions: positions[i],
    rows: positions[i].map(() => {
      const logits = Float64Array.from(all.subarray(row * n_vocab, ++row * n_vocab));
      const norm = log_sum_exp(logits);
      return logits.map((logit) => logit - norm);
    }),
  }));
}

async function ask_llama(options, sequences, scratch) {
  const jobs = sequences.map(({ tokens }, i) => ({ model: options.model, tokens, kv: "f32", out: join(scratch, `${i}.f64`) }));
  const answers = await ask_oracle(options.oracle, scratch, jobs);
  return answers.map((answer, i) => {
    if (answer.error) throw new Error(`llama.cpp: ${answer.error}`);
    return rows_of_oracle(readFileSync(jobs[i].out), answer.positions, answer.vocab);
  });
}

async function ask_sluice(options, sequences) {
  const all = [];
  for (const { tokens, rows } of sequences) {
    const args = ["logits", "-m", options.model, "--tokens", tokens.join(","), "--all", "--json", "-ctk", "f32", "-ctv", "f32"];
    all.push(rows_of_sluice(JSON.parse(await run_program(options.sluice, args)), tokens, rows[0].length));
  }
  return all;
}

async function main() {
  const { values: options } = parseArgs({
    options: { golden: { type: "string" }, model: { type: "string" }, oracle: { type: "string" }, sluice: { type: "string" } },
  });
  if (!options.golden || !options.model || !(options.oracle || options.sluice))
    throw new Error("usage: compare_logits.mjs --golden BASE --model FILE (--oracle DIR | --sluice PROGRAM)");
  const sequences = read_golden(options.golden);
  const scratch = mkdtempSync(join(tmpdir(), "sluice-golden-"));
  const answers = await (options.sluice ? ask_sluice(options, sequences) : ask_llama(options, sequences, scratch));
  rmSync(scratch, { recursive: true });

  let worst = { difference: -1 };
  let n_values = 0;
  sequences.forEach(({ positions, rows }, sequence) => {
    positions.forEach((pos, i) => {
      answers[sequence][pos].forEach((got, id) => {
        const difference = Math.abs(got - rows[i][id]);
        ++n_values;
        if (difference > worst.difference || Number.isNaN(difference)) worst = { difference, sequence, pos, id, expected: rows[i][id], got };
      });
    });
  });
  console.log(`${sequences.length} sequences, ${n_values} values, bound ${kBound}; largest difference: ${JSON.stringify(worst)}`);
  if (!(worst.difference <= kBound)) process.exitCode = 1;
}

await main();
