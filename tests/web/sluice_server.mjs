// `sluice serve` with the demo model on a slow machine made of RAM, where a quarter of the experts has room: tokens take
// long enough to be watched, and experts move.
// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const MACHINE = "vram=545MiB,gpu=0.15GB/s,link=0.1GB/s,ram=16GiB,cpu=4GB/s";

/** { url, stop() }; throws with what the server said where it does not start. */
export async function startSluice(program) {
  const flags = ["--port", "0", "--profile", "none", "--machine", "none", "--device", "sim", "--moe", "cache", "--sim-machine", MACHINE];
  const child = spawn(program, ["serve", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  const said = [];
  const stop = () => child.kill("SIGTERM");
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
  return { url, stop };
}
