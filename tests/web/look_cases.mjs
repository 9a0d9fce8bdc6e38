// Light, dark, narrow: readable everywhere, nothing cut off.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

/** WCAG contrast of pairs of the style sheet's colours, as the browser resolves them. */
const contrasts = (page) =>
  page.tab.evaluate(() => {
    const probe = document.body.appendChild(document.createElement("i"));
    const context = new OffscreenCanvas(1, 1).getContext("2d");
    const light = (name) => {
      probe.style.color = `var(${name})`;
      context.fillStyle = getComputedStyle(probe).color;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const pairs = [];
    for (const back of ["--bg", "--bg-side", "--surface", "--raised", "--tint"]) for (const text of ["--text", "--soft", "--accent", "--bad"]) pairs.push([text, back]);
    for (const text of ["--code-word", "--code-string", "--code-number", "--code-call"]) pairs.push([text, "--bg-side"]);
    pairs.push(["--accent-text", "--accent"], ["--text", "--accent-tint"], ["--accent", "--accent-tint"], ["--text", "--bad-tint"], ["--soft", "--bad-tint"]);
    return pairs.map(([text, back]) => {
      const [a, b] = [light(text), light(back)].sort((x, y) => y - x);
      return { text, back, ratio: (a + 0.05) / (b + 0.05) };
    });
  });

const background = (page) => page.tab.evaluate(() => getComputedStyle(document.body).backgroundColor);

async function readable(page) {
  assert.deepEqual((await contrasts(page)).filter(({ ratio }) => ratio < 4.5), []);
}

const light = Object.assign((page) => readable(page), { options: { colorScheme: "light" } });
const dark = Object.assign(
  async (page) => {
    await readable(page);
    const [r] = (await background(page)).match(/\d+/g).map(Number);
    assert.ok(r < 60, "dark is not dark");
    await page.tab.click("[aria-label=Settings]");
    await page.tab.check("label:has-text('Light') input");
    await page.tab.reload();
    await page.tab.waitForSelector("#composer");
    const [chosen] = (await background(page)).match(/\d+/g).map(Number);
    assert.ok(chosen > 200, "the person's choice does not hold");
  },
  { options: { colorScheme: "dark" } },
);

const phone = Object.assign(
  async (page) => {
    const overflow = () => page.tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.answerWith({ deltas: [{ content: `\`\`\`cpp\n${"x".repeat(300)}\n\`\`\`\n\n| a | b |\n|-|-|\n| ${"y".repeat(90)} | z |\n\n${"z".repeat(400)}` }] });
    await page.askAndWait("Something wide");
    assert.equal(await overflow(), 0, "the page scrolls sideways");
    const boxes = await page.tab.evaluate(() => [".thread", ".code pre", ".table"].map((name) => {
      const e = document.querySelector(name);
      return `${name} ${e.scrollWidth > e.clientWidth ? getComputedStyle(e).overflowX : "fits"}`;
    }));
    assert.deepEqual(boxes, [".thread fits", ".code pre auto", ".table fits"], "what is too wide scrolls in its own box");
    await page.tab.click("[aria-label='Expert map']");
    await page.tab.waitForSelector(".map-panel canvas");
    assert.equal(await overflow(), 0, "the map makes the page scroll sideways");
    const canvas = await page.tab.locator(".expert-map canvas").boundingBox();
    assert.ok(canvas.x >= 0 && canvas.x + canvas.width <= 375, "the map is cut off");
    await page.tab.keyboard.press("Escape");
    await page.tab.waitForSelector(".map-panel", { state: "detached" });
    await page.tab.click("button[aria-label=Conversations]");
    await page.tab.click(".item-name");
    await page.tab.waitForFunction(() => document.querySelector(".sidebar").inert);
  },
  { options: { viewport: { width: 375, height: 667 }, hasTouch: true } },
);

const copying = Object.assign(
  async (page) => {
    await page.answerWith({ deltas: [{ content: "```py\nprint('a < b')  # twice\n```" }] });
    await page.askAndWait("Code");
    await page.tab.click(".code button");
    await page.tab.waitForSelector(".code button:has-text('Copied')");
    assert.equal(await page.tab.evaluate(() => navigator.clipboard.readText()), "print('a < b')  # twice");
    assert.equal(await page.tab.locator(".hl-comment").textContent(), "# twice");
    assert.equal(await page.tab.locator(".hl-string").textContent(), "'a < b'");
  },
  { options: { permissions: ["clipboard-read", "clipboard-write"] } },
);

export const lookCases = {
  "light is readable": light,
  "dark is readable, and the settings decide": dark,
  "a phone shows all of it": phone,
  "code is coloured and copied": copying,
};
