// What every file of tests here begins with: the flags of its command line, the packages that npm brought, and
// `sluice serve` with the demo model on a free port.
//
//   NODE x_test.mjs --sluice PROGRAM --packages DIR
//
// DIR is where web/npm_install.mjs put the packages. NODE must be 22 or newer: the newest versions of these clients,
// which people install today, need it. Debian 12 has 18, so ctest takes the node that tests/parity brings from npm.
// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const { values: flags } = parseArgs({ options: { sluice: { type: "string" }, packages: { type: "string" } } });
const PATIENCE_MS = 120_000; // against hangs alone

/** A package, such as load("openai"). The packages are not beside the tests, where `import` would look for them. */
export const load = createRequire(join(resolve(flags.packages), "package.json"));

/** Tokens that the server's context holds: an answer without an end takes a while to fill it. */
export const N_CTX = 65_536;

/** Of a request: the end of an answer is no end, until the context is full. */
export const ENDLESS = { ignore_eos: true, seed: 1 };

export const QUESTION = "What is 17 + 25?";
export const ANSWER = "17 + 25 = 42."; // at temperature 0
export const STORY = "Tell me a story."; // for answers that differ with the seed
export const WILD = { temperature: 3, top_p: 1 }; // the demo model is sure of itself
export const TOO_LONG = "word ".repeat(N_CTX);

/** Parameters of a tool, and whether a value follows them. */
export const CITY = {
  type: "object",
  properties: { city: { enum: ["Oslo", "Rome"] } },
  required: ["city"],
  additionalProperties: false,
};
export const isCity = (value) => ["Oslo", "Rome"].includes(value.city) && Object.keys(value).length === 1;

/** Waits until `condition` holds; throws where it never does. */
export async function waitFor(condition, what) {
  for (const end = Date.now() + PATIENCE_MS; !(await condition()); await sleep(20)) {
    if (Date.now() > end) throw new Error(`it never came true: ${what}`);
  }
}

class Server {
  constructor(child, folder, url) {
    Object.assign(this, { child, folder, url });
  }

  /** The sum of all lines of a metric. */
  async metric(name) {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    if (lines.length === 0) throw new Error(`/metrics has no ${name}`);
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  }

  /** Has `leave` begin an answer without an end and break it off; the server must notice, and compute no more of it. */
  async expectCancel(leave) {
    const [gone, tokens] = ["sluice_http_disconnects_total", "sluice_new_tokens_total"];
    const n_gone = await this.metric(gone);
    const n_tokens = await this.metric(tokens);
    await leave();
    await waitFor(async () => (await this.metric(gone)) > n_gone, "the client has left");
    await this.waitForRunning(0);
    const n_computed = (await this.metric(tokens)) - n_tokens;
    if (n_computed > N_CTX / 2) throw new Error(`${n_computed} tokens were computed for a client that had left`);
  }

  waitForRunning(n) {
    return waitFor(async () => (await this.metric("sluice_answers_running")) === n, `${n} answers are computed`);
  }

  /** Ends it; its exit code, null where it had to be killed. */
  async stop() {
    const over = new Promise((done) => this.child.once("exit", done));
    if (this.child.exitCode === null) this.child.kill("SIGTERM");
    const killer = setTimeout(() => this.child.kill("SIGKILL"), PATIENCE_MS);
    const code = this.child.exitCode ?? (await over);
    clearTimeout(killer);
    rmSync(this.folder, { recursive: true, force: true });
    return code;
  }
}

/** Throws with what the server said where it does not start. */
export async function startServer(...more) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-clients-"));
  const log = join(folder, "log"); // a file: nobody reads it while the tests run, and a full pipe would block
  const descriptor = openSync(log, "w");
  const own = ["--port", "0", "-t", "1", "-c", String(N_CTX)];
  const child = spawn(flags.sluice, ["serve", ...own, ...more], { stdio: ["ignore", "pipe", descriptor] });
  closeSync(descriptor);
  process.once("exit", () => child.kill("SIGKILL")); // where a test file fails before its end
  const url = await new Promise((found, fail) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const address = /^listening at (http:\/\/\S+)/.exec(line);
      if (address) found(address[1]);
    });
    child.once("error", fail);
    child.once("exit", (code) => fail(new Error(`sluice serve ended with ${code}:\n${readFileSync(log, "utf8")}`)));
  });
  return new Server(child, folder, url);
}
