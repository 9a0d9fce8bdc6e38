// The life of an oracle process: llama.cpp from npm, the jobs of a file one after the other, and a line of
// JSON for each, {error} where a job failed.
// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

// argv: folder of the npm packages, file with {jobs}. run_job(llama, job) gives the answer.
export async function serve_jobs([npm_dir, job_file], run_job, options = {}) {
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
    ...options,
  });
  const { jobs } = JSON.parse(readFileSync(job_file, "utf8"));
  for (const [index, job] of jobs.entries()) {
    complaints.length = 0;
    let answer;
    try {
      answer = await run_job(llama, job);
    } catch (error) {
      // llama.cpp's own reason arrives after the exception.
      await new Promise((done) => setTimeout(done, 50));
      answer = { error: [error.message, ...complaints].join("; ") };
    }
    process.stdout.write(JSON.stringify({ job: index, ...answer }) + "\n");
  }
  await llama.dispose();
}
