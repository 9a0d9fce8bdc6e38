// Debian's Chromium, driven by the playwright-core of PACKAGES (web/npm_install.mjs brought it there).
// SPDX-License-Identifier: Apache-2.0
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";

/** The browser's path, or null. */
export function findChromium() {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // the next one
      }
    }
  }
  return null;
}

export async function launch(packages) {
  const { chromium } = createRequire(join(resolve(packages), "package.json"))("playwright-core");
  // No sandbox: tests run as root in containers, where Chromium's cannot start; the pages are our own.
  return chromium.launch({ executablePath: findChromium(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}
