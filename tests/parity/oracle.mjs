// The oracle: what llama.cpp (through node-llama-cpp, on the CPU) answers for a list of token ids.
// It knows nothing of sluice and judges nothing; compare.mjs does that. Run by the node that
// install.sh brings, in a process of its own, because llama.cpp aborts on some malformed files and
// must not take the test suite with it.
//
//   node oracle.mjs NPM_DIR JOBS.json
//
// JOBS.json is {"jobs": [job...]}; of a job only model, tokens and out are required:
//   model, out   paths
//   tokens       ids, evaluated as they are: no BOS is added
//   kv, kvValue  cache type of keys ("f16") and of values (as kv)
//   flash        flash attention (false)
//   greedy       how many tokens to continue greedily (0)
//   chunk        tokens per batch (all of them)
//   threads      (1)
// `out` receives float64, little endian, [positions, vocab]: the natural log-probabilities after
// tokens[0..i]. Prints one JSON line per job, in order:
//   {"job", "vocab", "positions", "greedy": [id...], "margin", "eog"}    or    {"job", "error"}
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { serve_jobs } from "./llama_jobs.mjs";

// ggml's type ids for the KV cache.
const kKvTypes = { f32: 0, f16: 1, bf16: 30, q8_0: 8, q4_0: 2 };

// log p_i = l_i - log sum_j exp(l_j), in double. `logits` is a Map id -> float32 over the whole
// vocabulary.
function log_softmax(logits, n_vocab) {
  if (logits.size !== n_vocab)
    throw new Error(`llama.cpp gave ${logits.size} logits, expected ${n_vocab}`);
  const out = new Float64Array(n_vocab);
  let max = -Infinity;
  for (const [id, logit] of logits) {
    out[id] = logit;
    if (logit > max) max = logit;
  }
  let sum = 0;
  for (const logit of out) sum += Math.exp(logit - max);
  const log_sum = max + Math.log(sum);
  return out.map((logit) => logit - log_sum);
}

// The most probable id (the lowest of equals), and how far ahead of the second it is.
function best(logprobs) {
  let first = 0;
  let second = -1;
  for (let id = 1; id < logprobs.length; ++id) {
    if (logprobs[id] > logprobs[first]) {
      second = first;
      first = id;
    } else if (second < 0 || logprobs[id] > logprobs[second]) {
      second = id;
    }
  }
  return { id: first, margin: logprobs[first] - logprobs[second] };
}

// Raw logits after each token. generateNext.logits are the model's own: with temperature 0 (the
// default here) the sampler chain only picks, it neither scales nor truncates. Positions and tokens
// are ours; no BOS is added.
async function evaluate(sequence, tokens, n_vocab) {
  const start = sequence.nextTokenIndex;
  const input = tokens.map((id) => [
    id,
    { generateNext: { logits: true, options: { temperature: 0 } } },
  ]);
  const output = await sequence.controlledEvaluate(input);
  if (sequence.nextTokenIndex !== start + tokens.length)
    throw new Error("llama.cpp shifted its context");
  return output.map((item) => log_softmax(item.next.logits, n_vocab));
}

async function evaluate_in_chunks(sequence, tokens, chunk, n_vocab) {
  const rows = [];
  for (let at = 0; at < tokens.length; at += chunk) {
    rows.push(...(await evaluate(sequence, tokens.slice(at, at + chunk), n_vocab)));
  }
  return rows;
}

async function run_job(llama, job) {
  const n_greedy = job.greedy ?? 0;
  const chunk = job.chunk ?? job.tokens.length;
  const model = await llama.loadModel({
    modelPath: resolve(job.model),
    gpuLayers: 0,
    ignoreMemorySafetyChecks: true,
  });
  try {
    const context = await model.createContext({
      contextSize: job.tokens.length + n_greedy + 8,
      batchSize: Math.max(chunk, 1),
      sequences: 1,
      threads: job.threads ?? 1,
      flashAttention: job.flash ?? false,
      experimentalKvCacheKeyType: kKvTypes[job.kv ?? "f16"],
      experimentalKvCacheValueType: kKvTypes[job.kvValue ?? job.kv ?? "f16"],
      ignoreMemorySafetyChecks: true,
    });
    const n_vocab = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
    const sequence = context.getSequence();
    const rows = await evaluate_in_chunks(sequence, job.tokens, chunk, n_vocab);

    const greedy = [];
    let margin = Infinity;
    let last = rows.at(-1);
    while (greedy.length < n_greedy) {
      const next = best(last);
      greedy.push(next.id);
      margin = Math.min(margin, next.margin);
      if (greedy.length < n_greedy) [last] = await evaluate(sequence, [next.id], n_vocab);
    }

    const flat = new Float64Array(rows.length * n_vocab);
    rows.forEach((row, pos) => flat.set(row, pos * n_vocab));
    writeFileSync(job.out, new Uint8Array(flat.buffer));
    const eog = greedy.some((id) => model.isEogToken(id));
    return {
      vocab: n_vocab,
      positions: rows.length,
      greedy,
      margin: n_greedy ? margin : null,
      eog,
    };
  } finally {
    await model.dispose(); // and its contexts with it
  }
}

await serve_jobs(process.argv.slice(2), run_job, { maxThreads: 0 });
