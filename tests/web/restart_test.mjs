// The server is killed (kill -9) while it answers, and started again at the same address: the page tells the fault, and
// keeps its conversations, settings included. Against `sluice serve` itself; tests/server/restart_test.py has the server's
// own files.
//
//   node tests/web/restart_test.mjs --packages DIR --sluice PATH [--patience MS]
//
// Exit code 1 on any failure, 77 (SKIPPED) where there is no Chromium.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findChromium, launch } from "./browser.mjs";
import { Page } from "./page.mjs";
import { SLOW, startSluice } from "./sluice_server.mjs";

const QUESTION = "What is 17 + 25?";
const ANSWER = "17 + 25 = 42.";

/** The next answers would take half a minute. */
function withoutEnd(page) {
  return page.tab.route("**/v1/chat/completions", (route) =>
    route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), ignore_eos: true, max_tokens: 4000 }) }),
  );
}

const { values: options } = parseArgs({
  options: { packages: { type: "string" }, sluice: { type: "string" }, patience: { type: "string", default: "60000" } },
});

function skip(why) {
  console.log(`SKIPPED: web.restart: ${why}`);
  process.exit(77);
}

if (!findChromium()) skip("there is no chromium (Debian: apt install chromium)");
if (!existsSync(join(options.packages, "node_modules", "playwright-core"))) skip("there is no playwright-core (web.install brings it)");

/** Settings, a finished conversation, and an answer that has begun. */
async function converse(page) {
  await page.tab.click("[aria-label=Settings]");
  await page.tab.fill(`.field:has-text("Seed") input`, "7");
  await page.tab.click(".settings .is-main");
  await page.askAndWait(QUESTION);
  await page.tab.keyboard.press("Control+Shift+O");
  await withoutEnd(page);
  await page.ask(page.long);
  await page.tab.waitForFunction(() => document.querySelector(".is-streaming .markdown")?.textContent.length > 20);
}

async function tellsTheFault(page) {
  await page.settle();
  await page.tab.waitForSelector(".is-answer .problem");
  const text = await page.answer().textContent();
  assert.ok(text.length > 20, `what had arrived is gone: ${text}`);
  return text;
}

async function hasKept(page, half) {
  await page.tab.unroute("**/v1/chat/completions");
  await page.tab.reload();
  await page.tab.waitForSelector(".is-answer .markdown");
  assert.deepEqual(await page.tab.locator(".item-name").allTextContents(), [page.long, QUESTION]);
  assert.equal(await page.answer().textContent(), half);
  await page.tab.click(`.item-name:has-text("17 + 25")`);
  await page.tab.waitForFunction((text) => document.querySelector(".is-answer .markdown")?.textContent.trim() === text, ANSWER);
}

async function goesOn(page) {
  await page.askAndWait("and now?");
  const body = page.bodies.at(-1);
  assert.deepEqual(body.messages.map((m) => m.role), ["user", "assistant", "user"]);
  assert.equal(body.messages[1].content.trim(), ANSWER);
  assert.equal(body.seed, 7);
  await page.tab.click(`.item-name:has-text("${page.long}")`);
  await page.tab.waitForSelector(".problem");
  await withoutEnd(page);
  await page.tab.click(".problem-buttons .button >> nth=0");
  await page.tab.waitForSelector(".is-streaming");
  assert.equal(await page.tab.locator(".problem").count(), 0, "the answer that was cut off cannot be asked for again");
  await page.tab.click("[aria-label='Stop the answer']");
  await page.settle();
}

async function run(browser, folder) {
  const profile = join(folder, "profile");
  const first = await startSluice(options.sluice, { profile, machine: SLOW });
  const page = await Page.open(browser, first.url, {}, Number(options.patience));
  await converse(page);
  assert.equal(await first.kill(), "SIGKILL");
  const half = await tellsTheFault(page);
  const second = await startSluice(options.sluice, { profile, machine: SLOW, port: first.port });
  assert.equal(second.url, first.url);
  await hasKept(page, half);
  await goesOn(page);
  await page.close();
  assert.equal(await second.stop(), 0);
  assert.ok(readFileSync(profile).length > 0);
  assert.deepEqual(second.said.filter((line) => line.includes("profile")), []);
}

const folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
const browser = await launch(options.packages);
try {
  await run(browser, folder);
  console.log("ok: conversations outlive a server that is killed");
} catch (error) {
  console.log(`FAILED: ${error.stack}`);
  process.exitCode = 1;
}
await browser.close();
rmSync(folder, { recursive: true });
process.exit();
