// Everything without a mouse.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

const focused = (page) =>
  page.tab.evaluate(() => {
    const e = document.activeElement;
    const style = getComputedStyle(e.matches("#composer") ? e.parentElement : e);
    return { label: e.getAttribute("aria-label") ?? e.textContent.trim().slice(0, 30), isVisible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
  });

async function waitForFocus(page, label) {
  await page.tab.waitForFunction((wanted) => {
    const e = document.activeElement;
    return (e.getAttribute("aria-label") ?? e.textContent.trim()).startsWith(wanted);
  }, label);
}

export const keyboardCases = {
  async "a whole chat with keys alone"(page) {
    const keys = page.tab.keyboard;
    await waitForFocus(page, "Message"); // the page opens ready to type
    await keys.type(page.long);
    await keys.press("Shift+Enter");
    await keys.type("Please.");
    await keys.press("Enter");
    await page.tab.waitForFunction(() => document.querySelector(".is-answer .markdown")?.textContent.length > 8);
    await keys.press("Escape");
    await page.settle();
    assert.equal(page.bodies[0].messages[0].content, `${page.long}\nPlease.`);

    await keys.press("ArrowUp");
    await waitForFocus(page, "Edit the message");
    await keys.press("Control+A");
    await keys.type("What is 17 + 25?");
    await keys.press("Enter");
    await page.tab.waitForSelector("[aria-label='Version 2 of 2']");
    await page.settle();
    await waitForFocus(page, "Message");

    await keys.press("Control+Shift+O");
    await page.tab.waitForSelector(".welcome");
    await keys.press("Control+Shift+E");
    await page.tab.waitForSelector(".map-panel", { state: "detached" });
    await keys.press("Control+Shift+E");
    await page.tab.waitForSelector(".map-panel");
  },

  async "every stop of Tab has a name and shows the focus"(page) {
    await page.askAndWait("What is 17 + 25?");
    await page.tab.evaluate(() => document.activeElement.blur());
    const seen = [];
    for (let i = 0; i < 40; ++i) {
      await page.tab.keyboard.press("Tab");
      if (await page.tab.evaluate(() => document.activeElement === document.body)) continue; // once around
      const now = await focused(page);
      if (now.label === seen[0]?.label) break;
      seen.push(now);
    }
    assert.deepEqual(seen.filter((s) => !s.isVisible || s.label === ""), []);
    const labels = seen.map((s) => s.label);
    for (const wanted of ["New conversation", "Settings", "Expert map", "Answer again", "Edit", "Message"]) assert.ok(labels.includes(wanted), `${wanted} is not among ${labels}`);
  },

  async "menus and dialogs open, move and close by keys"(page) {
    await page.askAndWait("What is 17 + 25?");
    await page.tab.focus(".item .icon-button");
    await page.tab.keyboard.press("Enter");
    await waitForFocus(page, "Rename");
    await page.tab.keyboard.press("ArrowDown");
    await waitForFocus(page, "Export as Markdown");
    await page.tab.keyboard.press("Escape");
    await waitForFocus(page, "More for");
    await page.tab.focus("[aria-label=Settings]");
    await page.tab.keyboard.press("Enter");
    await page.tab.waitForSelector("dialog[open]");
    await page.tab.keyboard.press("Escape");
    await page.tab.waitForSelector("dialog", { state: "detached" });
    await waitForFocus(page, "Settings"); // it comes back
  },
};
