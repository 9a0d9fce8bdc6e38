// Pictures of the page, for docs/ and for whoever changes its looks: light, dark, phone, code, an error, the map in motion.
//
//   node tests/web/screenshots.mjs DIST PACKAGES OUT [NAME...]
// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { startMock } from "./mock.mjs";

const [dist, packages, out, ...only] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await launch(packages);

async function ask(page, text) {
  await page.fill("#composer", text);
  await page.press("#composer", "Enter");
}
const settled = (page) => page.waitForSelector(".message:last-child .actions", { timeout: 60000 });
async function history(page) {
  for (const question of ["What is 17 + 25?", "Explain how experts move", "Write a queue, with code"]) {
    await page.keyboard.press("Control+Shift+O");
    await ask(page, question);
    await settled(page);
  }
}

const SHOTS = {
  welcome: { run: async () => {} },
  "welcome-dark": { dark: true, run: async () => {} },
  streaming: {
    delay: 5,
    run: async (page, mock) => {
      await history(page);
      mock.delay = 45;
      await page.keyboard.press("Control+Shift+O");
      await ask(page, "Why do experts move? Tell me all, long");
      await page.waitForTimeout(9000);
    },
  },
  "streaming-dark": {
    dark: true,
    delay: 5,
    run: async (page, mock) => {
      await history(page);
      mock.delay = 45;
      await page.keyboard.press("Control+Shift+O");
      await ask(page, "Why do experts move? Tell me all, long");
      await page.waitForTimeout(9000);
    },
  },
  code: { delay: 4, run: async (page) => { await ask(page, "A queue in code, please"); await settled(page); } },
  "code-dark": { dark: true, delay: 4, run: async (page) => { await ask(page, "A queue in code, please"); await settled(page); } },
  reasoning: { delay: 4, run: async (page) => { await ask(page, "Think: 17 and 25?"); await settled(page); await page.click("summary"); } },
  error: { key: "secret", run: async (page) => { await ask(page, "Hello"); await page.waitForSelector(".problem"); } },
  settings: { run: async (page) => { await page.click("[aria-label=Settings]"); await page.waitForSelector(".settings"); } },
  cpu: { cpu: true, delay: 30, run: async (page) => { await ask(page, "Why do experts move?"); await page.waitForTimeout(3000); } },
  phone: { phone: true, delay: 4, run: async (page) => { await ask(page, "A queue in code, please"); await settled(page); } },
  "phone-map": { phone: true, delay: 20, run: async (page) => { await ask(page, "Why do experts move?"); await page.waitForTimeout(2500); await page.click("[aria-label='Expert map']"); await page.waitForTimeout(1500); } },
  "phone-list": { phone: true, dark: true, delay: 2, run: async (page) => { await history(page); await page.click("button[aria-label=Conversations]"); await page.waitForTimeout(400); } },
};

for (const [name, shot] of Object.entries(SHOTS)) {
  if (only.length > 0 && !only.includes(name)) continue;
  const mock = await startMock({ dist, delay: shot.delay, key: shot.key, cpu: shot.cpu });
  const context = await browser.newContext({
    viewport: shot.phone ? { width: 390, height: 844 } : { width: 1440, height: 900 },
    deviceScaleFactor: shot.phone ? 2 : 1,
    hasTouch: shot.phone,
    colorScheme: shot.dark ? "dark" : "light",
  });
  const page = await context.newPage();
  page.on("console", (message) => console.log(`${name}: ${message.text()}`));
  page.on("pageerror", (error) => console.log(`${name}: ${error.stack}`));
  await page.goto(mock.url);
  await page.waitForSelector("#composer");
  await page.waitForTimeout(600);
  await shot.run(page, mock);
  await page.screenshot({ path: join(out, `${name}.png`) });
  await context.close();
  await mock.close();
}
await browser.close();
