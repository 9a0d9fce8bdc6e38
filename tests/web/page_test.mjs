// The page in headless Chromium, against the mock server, or with --sluice or --url against a real one: what is asked here
// holds for both. Faults and hostile answers are put in between server and page by the browser.
//
//   node tests/web/page_test.mjs --packages DIR (--dist DIR | --sluice PATH | --url URL) [--only WORDS] [--patience MS]
//
// Exit code 1 on any failure, 77 (SKIPPED) where there is no Chromium.
// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findChromium, launch } from "./browser.mjs";
import { chatCases } from "./chat_cases.mjs";
import { keyboardCases } from "./keyboard_cases.mjs";
import { lookCases } from "./look_cases.mjs";
import { mapCases } from "./map_cases.mjs";
import { startMock } from "./mock.mjs";
import { startSluice } from "./sluice_server.mjs";
import { Page } from "./page.mjs";
import { safetyCases } from "./safety_cases.mjs";

const { values: options } = parseArgs({
  options: { dist: { type: "string" }, packages: { type: "string" }, sluice: { type: "string" }, url: { type: "string" }, only: { type: "string", default: "" }, patience: { type: "string", default: "60000" } },
});

function skip(why) {
  console.log(`SKIPPED: web.page: ${why}`);
  process.exit(77);
}

if (!findChromium()) skip("there is no chromium (Debian: apt install chromium)");
if (!existsSync(join(options.packages, "node_modules", "playwright-core"))) skip("there is no playwright-core (web.install brings it)");
if (options.dist && !existsSync(join(options.dist, "app.js"))) {
  console.error(`web.page: ${options.dist} holds no page; was npm's registry out of reach when it was built?`);
  process.exit(1);
}

const server = options.sluice ? await startSluice(options.sluice) : null;
const url = server?.url ?? options.url;
const browser = await launch(options.packages);
let nFailed = 0;
const cases = { ...chatCases, ...safetyCases, ...mapCases, ...keyboardCases, ...lookCases };
for (const [name, run] of Object.entries(cases)) {
  if (!name.includes(options.only)) continue;
  // A real server answers through the mock, which only sets the pace.
  const mock = await startMock({ dist: options.dist, api: url, delay: url ? 40 : 20 });
  try {
    const page = await Page.open(browser, mock.url, run.options, Number(options.patience));
    await run(page, url ? null : mock);
    await page.close();
    console.log(`ok: ${name}`);
  } catch (error) {
    nFailed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
    for (const context of browser.contexts()) await context.close();
  }
  await mock.close();
}
await browser.close();
server?.stop();
console.log(`${Object.keys(cases).length} cases, ${nFailed} failed`);
process.exit(nFailed > 0 ? 1 : 0);
