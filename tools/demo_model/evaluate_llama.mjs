// Held-out accuracy through llama.cpp (node-llama-cpp, CPU): every prompt of a question file is
// continued greedily and its answer checked. Prints a table by kind; --out keeps it as JSON with
// the wrong answers.
//
//   ORACLE/node tools/demo_model/evaluate_llama.mjs --model FILE.gguf --eval FILE.jsonl --oracle ORACLE [--out FILE.json]
// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { pathToFileURL } from "node:url";

const kMostNew = 240;
const kContext = 1024;

function parses(text) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

function is_right({ check, expected }, answer) {
  if (check === "exact") return answer === expected;
  if (check === "contains") return expected.every((word) => answer.includes(word));
  if (check === "any") return expected.includes(answer);
  if (check === "json") return isDeepStrictEqual(parses(answer)?.value, expected);
  throw new Error(`the check '${check}' is not known`);
}

async function continue_greedily(model, sequence, prompt) {
  await sequence.clearHistory();
  const tokens = model.tokenize(prompt, true);
  const answer = [];
  for await (const token of sequence.evaluate(tokens, { temperature: 0 })) {
    if (model.isEogToken(token)) break;
    answer.push(token);
    if (answer.length === kMostNew) break;
  }
  return model.detokenize(answer, true);
}

function print_table(kinds) {
  console.log(`${"kind".padEnd(16)} right  asked  percent`);
  for (const [kind, { right, asked, valid }] of kinds) {
    const note = valid === undefined ? "" : `  (valid JSON: ${((100 * valid) / asked).toFixed(1)} %)`;
    console.log(`${kind.padEnd(16)} ${String(right).padStart(5)}  ${String(asked).padStart(5)}  ${((100 * right) / asked).toFixed(1).padStart(6)}${note}`);
  }
}

async function main() {
  const { values: options } = parseArgs({
    options: { model: { type: "string" }, eval: { type: "string" }, oracle: { type: "string" }, out: { type: "string" } },
  });
  if (!options.model || !options.eval || !options.oracle)
    throw new Error("usage: evaluate_llama.mjs --model FILE --eval FILE --oracle DIR [--out FILE]");
  const entry = join(resolve(options.oracle), "node_modules/node-llama-cpp/dist/index.js");
  const { getLlama } = await import(pathToFileURL(entry).href);
  const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false, logLevel: "error" });
  const model = await llama.loadModel({ modelPath: resolve(options.model), gpuLayers: 0, ignoreMemorySafetyChecks: true });
  const context = await model.createContext({ contextSize: kContext, sequences: 1, threads: 1, ignoreMemorySafetyChecks: true });
  const sequence = context.getSequence();

  const questions = readFileSync(options.eval, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const kinds = new Map();
  const wrong = [];
  for (const question of questions) {
    const answer = await continue_greedily(model, sequence, question.prompt);
    const right = is_right(question, answer);
    const count = kinds.get(question.kind) ?? { right: 0, asked: 0 };
    count.right += right ? 1 : 0;
    count.asked += 1;
    if (question.check === "json") count.valid = (count.valid ?? 0) + (parses(answer) ? 1 : 0);
    kinds.set(question.kind, count);
    if (!right) wrong.push({ id: question.id, prompt: question.prompt, expected: question.expected, answer });
  }
  print_table(kinds);
  if (options.out) writeFileSync(options.out, JSON.stringify({ model: options.model, kinds: Object.fromEntries(kinds), wrong }, null, 1));
  await llama.dispose();
}

await main();
