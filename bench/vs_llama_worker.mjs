// llama.cpp's side of vs_llama.mjs: times prefill and decode of one model on the CPU, in a process of
// its own, and knows nothing of sluice.
//
//   node vs_llama_worker.mjs NPM_DIR JOBS.json
//
// A job is {model, threads, flash, prefill: [n...], decode: n}. Its answer, a line of JSON, is
//   {"prefill": [seconds...], "decode": seconds, "wall": {"prefill": [...], "decode"}, "load": seconds}
// Each test runs once before it is timed. Batches go straight to llama_decode: no tokenizer, no
// sampling, and logits of the last token only. The time is llama.cpp's own count of evaluation: the
// way from JavaScript to it and back (`wall`) takes up to a millisecond a token on a busy machine.
// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { serve_jobs } from "../tests/parity/llama_jobs.mjs";

const kBatch = 512; // llama.cpp's default, for batch and micro-batch

// The same kind of text as `sluice bench`: random, with a seed.
function* random_tokens(n_vocab) {
  let state = 1;
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield Math.floor((state / 2 ** 32) * n_vocab);
  }
}

const seconds_since = (start) => Number(process.hrtime.bigint() - start) / 1e9;

class Evaluator {
  constructor(context, n_vocab) {
    this.context = context._ctx; // the binding itself: the queue above it is not llama.cpp
    this.tokens = random_tokens(n_vocab);
  }

  take(n) {
    return Uint32Array.from({ length: n }, () => this.tokens.next().value);
  }

  async batch(tokens, pos, wants_logits) {
    this.context.initBatch(tokens.length);
    const logits = Uint32Array.from(wants_logits ? [tokens.length - 1] : []);
    this.context.addToBatch(0, pos, tokens, logits);
    await this.context.decodeBatch();
  }

  async time(tokens, n_batch) {
    this.context.disposeSequence(0); // forgets what was there
    const start = process.hrtime.bigint();
    for (let at = 0; at < tokens.length; at += n_batch) {
      const end = Math.min(at + n_batch, tokens.length);
      await this.batch(tokens.subarray(at, end), at, n_batch === 1 || end === tokens.length);
    }
    return seconds_since(start);
  }

  // {seconds, wall} of the second of two runs.
  async timed_twice(n_tokens, n_batch) {
    await this.time(this.take(n_tokens), n_batch);
    await this.counted_seconds(); // begins anew
    const wall = await this.time(this.take(n_tokens), n_batch);
    return { seconds: await this.counted_seconds(), wall };
  }

  // What llama.cpp counted since the last call, from its log:
  //   prompt eval time =     150.03 ms /   256 tokens (...)
  //          eval time =      19.21 ms /    64 runs   (...)
  async counted_seconds() {
    log.length = 0;
    this.context.printTimings();
    await new Promise((done) => setTimeout(done, 50)); // the log arrives a little later
    const times = [...log.join("\n").matchAll(/eval time = +([\d.]+) ms/g)];
    if (times.length !== 2)
      throw new Error(`expected two lines of 'eval time' in llama.cpp's log, got ${log}`);
    return times.reduce((sum, [, ms]) => sum + Number(ms) / 1e3, 0);
  }
}

async function run_job(llama, job) {
  const start = process.hrtime.bigint();
  const model = await llama.loadModel({
    modelPath: resolve(job.model),
    gpuLayers: 0,
    ignoreMemorySafetyChecks: true,
  });
  const load = seconds_since(start);
  const context = await model.createContext({
    contextSize: Math.max(...job.prefill, job.decode) + 8,
    batchSize: kBatch,
    sequences: 1,
    threads: job.threads,
    flashAttention: job.flash,
    performanceTracking: true,
    ignoreMemorySafetyChecks: true,
  });
  context._ctx.setThreads(job.threads);
  const evaluator = new Evaluator(context, model.fileInfo.metadata.tokenizer.ggml.tokens.length);
  const prefill = [];
  for (const n of job.prefill) prefill.push(await evaluator.timed_twice(n, kBatch));
  const decode = await evaluator.timed_twice(job.decode, 1);
  await model.dispose();
  return {
    prefill: prefill.map(({ seconds }) => seconds),
    decode: decode.seconds,
    wall: { prefill: prefill.map(({ wall }) => wall), decode: decode.wall },
    load,
  };
}

const log = [];
await serve_jobs(process.argv.slice(2), run_job, {
  maxThreads: 0,
  logLevel: "debug",
  logger: (_, message) => log.push(message.trim()),
});
