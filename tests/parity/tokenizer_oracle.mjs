// Asks llama.cpp (through node-llama-cpp) for the tokens of texts. Knows nothing of sluice. Run by
// the node that install.sh brings, in a process of its own: oracle.mjs says why.
//
//   node tokenizer_oracle.mjs NPM_DIR JOBS.json
//
// JOBS.json is {"jobs": [{"model": path, "texts": [{"text", "special"}...]}...]}; prints one JSON
// line for each job, in order:
//   {"job", "ids": [[id...]...], "adds_bos"}    or    {"job", "error"}
import { resolve } from "node:path";
import { serve_jobs } from "./llama_jobs.mjs";

async function run_job(llama, job) {
  const model = await llama.loadModel({
    modelPath: resolve(job.model),
    gpuLayers: 0,
    vocabOnly: true,
    ignoreMemorySafetyChecks: true,
  });
  try {
    return {
      ids: job.texts.map(({ text, special }) => model.tokenize(text, special)),
      adds_bos: model.tokens.shouldPrependBosToken,
    };
  } finally {
    await model.dispose();
  }
}

await serve_jobs(process.argv.slice(2), run_job);
