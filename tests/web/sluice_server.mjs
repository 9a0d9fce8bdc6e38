// `sluice serve` with the demo model on a device made of RAM, where not all experts have room: experts move.
// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A described machine, in its own time: a quarter of the experts has room. */
const DESCRIBED = ["--sim-machine", "vram=545MiB,gpu=0.15GB/s,link=0.1GB/s,ram=16GiB,cpu=4GB/s"];
/** One that is slow by the clock on the wall, some seventy tokens a second: every token waits for experts that come over the link. */
export const SLOW = ["--cache-slots", "32", "--miss-split", "1", "--sim-link", "0.05GB/s"];

/** { url, port, said (lines so far), stop() and kill() (how it ended: code or signal) }. Throws with what the server said where it does not start. */
export async function startSluice(program, { port = 0, profile = "none", machine = DESCRIBED } = {}) {
  const flags = ["--port", `${port}`, "--profile", profile, "--machine", "none", "--device", "sim", "--moe", "cache", ...machine];
  const child = spawn(program, ["serve", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  const said = [];
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const end = (signal) => (child.kill(signal), ended);
  process.on("exit", () => child.kill("SIGKILL")); // of a test that failed
  const url = await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        const address = /http:\/\/[\d.:]+/.exec(line);
        if (address) resolve(`${address[0]}/`);
      });
    }
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`sluice serve ended with ${code}:\n${said.join("\n")}`)));
  });
  return { url, port: new URL(url).port, said, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}
