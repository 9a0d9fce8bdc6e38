// Brings the packages of FOLDER/package.json, at the versions of its lock file, into DIR/node_modules. Needs the network
// the first time; afterwards it only looks at DIR/.complete. Writes nothing into the source tree.
//
//   node web/npm_install.mjs FOLDER DIR
// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const FILES = ["package.json", "package-lock.json"];

function stampOf(dir) {
  try {
    return readFileSync(join(dir, ".complete"), "utf8");
  } catch {
    return "";
  }
}

/** Throws an Error that says what npm said. */
export function npmInstall(folder, dir) {
  const hash = createHash("sha256");
  for (const name of FILES) hash.update(readFileSync(join(folder, name)));
  const wanted = hash.digest("hex");
  if (stampOf(dir) === wanted) return;

  mkdirSync(dir, { recursive: true });
  rmSync(join(dir, ".complete"), { force: true });
  for (const name of FILES) copyFileSync(join(folder, name), join(dir, name));
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = spawnSync("npm", ["ci", ...quiet, "--fetch-retries=1", "--fetch-retry-mintimeout=1000"], {
    cwd: dir,
    encoding: "utf8",
  });
  if (npm.error) throw new Error(`npm does not start (${npm.error.message}): install the packages nodejs and npm`);
  if (npm.status !== 0) {
    const reason = npm.stderr.split("\n").filter((line) => /code E|request to|reason|EINTEGRITY/.test(line));
    throw new Error(`npm could not install the packages of ${folder}: ${reason.join("; ") || npm.stderr.trim()}`);
  }
  // Written last: an interrupted install leaves no stamp and starts over.
  writeFileSync(join(dir, ".complete"), wanted);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    npmInstall(process.argv[2], process.argv[3]);
  } catch (error) {
    console.error(`npm_install: ${error.message}`);
    process.exit(1);
  }
}
