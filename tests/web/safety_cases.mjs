// What a model or a server may do to the page: hostile text, and faults, which must be told with a way out.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

const HOSTILE = `<script>window.owned = 1</script>
<img src=x onerror="window.owned = 2"> <svg onload="window.owned = 3"></svg>
<iframe src="https://example.com"></iframe><style>body { display: none }</style>

[click](javascript:window.owned=4) [data](data:text/html,<script>window.owned=5</script>) <a href="vbscript:x">v</a>

![picture](https://example.com/a.png)
<form action="https://example.com"><input name=a><button>Send</button></form>
<div style="position:fixed" class="shade" id="composer" onclick="window.owned=6">text</div>
<button data-copy onclick="window.owned=7">b</button> <details open ontoggle="window.owned=8">d</details>
<math><mtext><table><mglyph><style><img src=x onerror="window.owned=9">

\`\`\`html"><script>window.owned = 10</script>
<script>window.owned = 11</script>
\`\`\`

[good](https://example.com/page) **bold**`;

/** What the page says of the newest answer, which fails with the given response. */
async function problem(page, answer) {
  await page.answerWith(answer);
  await page.ask("Hello");
  return page.tab.locator(".is-answer").last().locator(".problem").textContent();
}

export const safetyCases = {
  async "hostile answers do nothing"(page) {
    await page.answerWith({ deltas: [...HOSTILE].map((content) => ({ content })) });
    await page.askAndWait("Be bad");
    await page.tab.click(".is-answer .markdown", { position: { x: 5, y: 5 } });
    const found = await page.tab.evaluate(() => {
      const box = document.querySelector(".is-answer");
      const all = [...box.querySelectorAll(".markdown *")];
      return {
        owned: window.owned,
        tags: all.filter((e) => /^(script|img|svg|iframe|style|form|math|object|embed|link|meta)$/i.test(e.tagName)).map((e) => e.outerHTML),
        inputs: box.querySelectorAll("input, .shade, [id], [style]").length,
        handlers: all.flatMap((e) => [...e.attributes]).filter((a) => /^on/i.test(a.name)).map((a) => a.name),
        links: all.filter((e) => e.href).map((e) => `${e.protocol} ${e.rel}`),
        code: box.querySelector("pre code").textContent,
        bold: box.querySelector("strong").textContent,
      };
    });
    assert.deepEqual(found, {
      owned: undefined,
      tags: [],
      inputs: 0,
      handlers: [],
      links: ["https: noopener noreferrer", "https: noopener noreferrer"],
      code: "<script>window.owned = 11</script>",
      bold: "bold",
    });
  },

  async "what a person writes is text"(page) {
    await page.askAndWait("<img src=x onerror='window.owned=1'> **no**");
    assert.equal(await page.tab.locator(".bubble").textContent(), "<img src=x onerror='window.owned=1'> **no**");
    assert.equal(await page.tab.evaluate(() => window.owned), undefined);
  },

  async "the server sends the policy with the page"(page) {
    const response = await page.tab.request.get(page.url);
    assert.match(response.headers()["content-security-policy"], /default-src 'none'.*require-trusted-types-for 'script'/);
  },

  async "the policy stops what would slip through"(page) {
    const stopped = await page.tab.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b>x</b>";
        return false;
      } catch {
        return true;
      }
    });
    assert.ok(stopped, "innerHTML takes a plain string");
    await page.until("the report of it", () => page.offences.length > 0);
    page.offences = []; // this one was ours
  },

  async "a busy server says when to come back, and again works"(page) {
    const text = await problem(page, { status: 429, headers: { "retry-after": "3" }, body: '{"error":{"message":"queue full"}}' });
    assert.match(text, /The server is busy.*Try again in 3 s\..*queue full/);
    await page.tab.unroute("**/v1/chat/completions");
    await page.tab.click(".problem button:has-text('Try again')");
    await page.tab.waitForSelector("[aria-label='Version 2 of 2']");
    await page.settle();
    assert.notEqual((await page.answer().textContent()).trim(), "");
  },

  async "a missing key leads to the settings"(page) {
    const text = await problem(page, { status: 401, body: '{"error":{"message":"no key"}}' });
    assert.match(text, /API key/);
    await page.tab.click(".problem button:has-text('Settings')");
    await page.tab.unroute("**/v1/chat/completions");
    await page.tab.fill("[type=password]", "secret");
    await page.tab.keyboard.press("Escape");
    await page.tab.waitForSelector("dialog", { state: "detached" });
    const [request] = await Promise.all([page.tab.waitForRequest("**/v1/chat/completions"), page.tab.click(".problem button:has-text('Try again')")]);
    assert.equal(request.headers()["authorization"], "Bearer secret");
  },

  async "a full context says how to go on"(page) {
    const text = await problem(page, { status: 400, body: '{"error":{"message":"the prompt has 9000 tokens, the context 4096"}}' });
    assert.match(text, /no longer fits.*Start a new one/);
  },

  async "other faults are told in words"(page) {
    assert.match(await problem(page, { status: 500, body: "boom" }), /The server failed \(500\).*boom/);
    await page.tab.unroute("**/v1/chat/completions");
    assert.match(await problem(page, { status: 503, body: "" }), /not ready/);
    await page.tab.unroute("**/v1/chat/completions");
    await page.tab.route("**/v1/chat/completions", (route) => route.abort());
    await page.ask("Hello");
    await page.tab.waitForSelector(".problem:has-text('cannot be reached')");
  },

  async "a stream that breaks off keeps its text"(page) {
    const body = 'data: {"choices":[{"delta":{"content":"half an ans"}}]}\n\n';
    await page.tab.route("**/v1/chat/completions", (route) => route.fulfill({ headers: { "content-type": "text/event-stream" }, body }));
    await page.ask("Hello");
    await page.tab.waitForSelector(".problem:has-text('broke')");
    assert.match(await page.answer().textContent(), /half an ans/);
  },
};
