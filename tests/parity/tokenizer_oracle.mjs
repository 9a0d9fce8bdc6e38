// Asks llama.cpp (through node-llama-cpp) for the tokens of texts. Knows nothing of sluice. Run by
// the node that install.sh brings, in a process of its own: oracle.mjs says why.
//
//   node tokenizer_oracle.mjs NPM_DIR JOBS.json
//
// JOBS.json is {"jobs": [{"model": path, "texts": [{"text", "special"}...]}...]}; prints one JSON
// line for each job, in order:
//   {"job", "ids": [[id...]...], "adds_bos"}    or    {"job", "error"}
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

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

async function main([npm_dir, job_file]) {
  const entry = join(resolve(npm_dir), "node_modules/node-llama-cpp/dist/index.js");
  const { getLlama } = await import(pathToFileURL(entry).href);
  const complaints = [];
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: "error",
    logger: (_, message) => complaints.push(message.trim()),
  });
  const { jobs } = JSON.parse(readFileSync(job_file, "utf8"));
  for (const [index, job] of jobs.entries()) {
    complaints.length = 0;
    let answer;
    try {
      answer = await run_job(llama, job);
    } catch (error) {
      await new Promise((done) => setTimeout(done, 50)); // its own reason arrives later
      answer = { error: [error.message, ...complaints].join("; ") };
    }
    process.stdout.write(JSON.stringify({ job: index, ...answer }) + "\n");
  }
  await llama.dispose();
}

await main(process.argv.slice(2));
