// `sluice serve` with the demo model on a slow machine made of RAM, where a quarter of the experts has room: experts move.
// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const machineOf = (gpu) => `vram=545MiB,gpu=${gpu},link=0.1GB/s,ram=16GiB,cpu=4GB/s`;

/** { url, port, said (lines so far), stop() and kill() (how it ended: code or signal) }; gpu: how slow it is. Throws with what the server said where it does not start. */
export async function startSluice(program, { port = 0, profile = "none", gpu = "0.15GB/s" } = {}) {
  const flags = ["--port", `${port}`, "--profile", profile, "--machine", "none", "--device", "sim", "--moe", "cache", "--sim-machine", machineOf(gpu)];
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
