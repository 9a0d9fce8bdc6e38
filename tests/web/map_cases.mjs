// The expert map: it lives while an answer streams, and says what each cell is.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

const pixels = (page) =>
  page.tab.evaluate(() => {
    const canvas = document.querySelector(".expert-map canvas");
    return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data];
  });

const says = (page, pattern) => page.tab.waitForFunction((p) => new RegExp(p).test(document.querySelector(".readout").textContent), pattern);

export const mapCases = {
  async "the map changes while tokens stream"(page, mock) {
    if (mock) mock.delay = 30;
    await page.tab.waitForSelector("canvas[data-version]");
    const before = await pixels(page);
    assert.ok(new Set(before).size > 3, "the canvas is empty");
    await page.ask(page.long);
    let n = 0;
    for (;;) {
      const now = await pixels(page);
      n = now.filter((value, i) => value !== before[i]).length;
      if (n > before.length / 100) break;
      assert.ok(await page.tab.locator(".is-streaming").count(), `the answer ended, and ${n} of ${before.length} bytes had changed`);
    }
    assert.ok(await page.tab.locator(".is-streaming").count(), "it changed only after the answer");
    await page.tab.keyboard.press("Escape");
    await page.settle();
  },

  async "a cell says which expert it is, to the mouse and to the keys"(page) {
    await page.tab.waitForSelector(".readout");
    const box = await page.tab.locator(".expert-map canvas").boundingBox();
    await page.tab.mouse.move(box.x + 23, box.y + 2);
    await says(page, "^Layer 0 · expert 0 · (in|on)");
    await page.tab.mouse.move(box.x - 30, box.y);
    await says(page, "^\\d+ layers × \\d+ experts$");
    await page.tab.focus(".expert-map canvas");
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"]) await page.tab.keyboard.press(key);
    await says(page, "^Layer 1 · expert 1 ·");
  },

  async "speed, hits and link are plotted, and the plan is there"(page, mock) {
    await page.ask(page.long);
    await page.tab.waitForFunction(() => Number(document.querySelector(".chart b")?.textContent) > 0);
    assert.ok((await page.tab.locator(".plan dd").count()) >= 4);
    if (mock) {
      assert.match(await page.tab.locator(".requests").textContent(), /1 running/);
      assert.equal(await page.tab.locator(".chart canvas").count(), 3);
      await page.tab.waitForFunction(() => /\d %/.test(document.querySelectorAll(".chart b")[1]?.textContent));
    }
    await page.tab.keyboard.press("Escape");
    await page.settle();
  },

  async "a server that comes back is found again"(page, mock) {
    await page.tab.waitForSelector(".status .is-live");
    if (!mock) return;
    const port = Number(new URL(mock.url).port);
    await mock.close();
    await page.tab.waitForSelector(".status .is-lost");
    const { startMock } = await import("./mock.mjs");
    const again = await startMock({ dist: mock.dist, port });
    mock.close = again.close;
    await page.tab.waitForSelector(".status .is-live");
  },

  async "without the live stream the page asks once a second"(page) {
    await page.tab.route("**/api/sluice/live", (route) => route.fulfill({ status: 404, body: "" }));
    await page.tab.reload();
    await page.tab.waitForFunction(() => Number(document.querySelector("canvas[data-version]")?.dataset.version) >= 2);
  },
};
