// The page in a browser, as a test sees it: it remembers every request that left for elsewhere, every breach of the
// policy and every error, and the test fails on any.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

export class Page {
  /** options: playwright's, for the context. */
  static async open(browser, url, options = {}, patience) {
    const it = new Page();
    it.url = url;
    it.patience = patience;
    it.long = "Tell me a story."; // its answer takes seconds
    it.offences = [];
    it.bodies = []; // of the requests for answers
    it.context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
    it.context.setDefaultTimeout(patience);
    await it.context.exposeFunction("tellOffence", (text) => it.offences.push(text));
    await it.context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (e) => window.tellOffence(`policy: ${e.violatedDirective} ${e.blockedURI}`));
    });
    await it.newTab();
    return it;
  }

  async newTab() {
    this.tab = await this.context.newPage();
    this.tab.on("pageerror", (error) => this.offences.push(`error: ${error.stack}`));
    this.tab.on("request", (request) => {
      if (!request.url().startsWith(this.url) && !request.url().startsWith("blob:")) this.offences.push(`request: ${request.url()}`);
      if (request.url().endsWith("/chat/completions")) this.bodies.push(request.postDataJSON());
    });
    await this.tab.goto(this.url);
    await this.tab.waitForSelector("#composer");
  }

  /** Returns once the new question's own answer has appeared; earlier ones stay in the page. */
  async ask(text) {
    const before = await this.tab.locator(".is-answer").count();
    await this.tab.fill("#composer", text);
    await this.tab.press("#composer", "Enter");
    await this.tab.waitForFunction((n) => document.querySelectorAll(".is-answer").length > n, before);
  }

  async askAndWait(text) {
    await this.ask(text);
    await this.settle();
  }

  /** Until nothing streams. */
  async settle() {
    await this.tab.waitForFunction(() => document.querySelector(".is-answer") && !document.querySelector(".is-streaming"));
  }

  /** For what the browser cannot wait for. */
  async until(what, condition) {
    for (const end = Date.now() + this.patience; !condition(); ) {
      assert.ok(Date.now() < end, `still waiting for ${what}`);
      await this.tab.waitForTimeout(20);
    }
  }

  answer() {
    return this.tab.locator(".is-answer .markdown").last();
  }

  /** The next answers come from here: chunks of an OpenAI stream, or a status with a body. */
  async answerWith({ deltas, status = 200, headers = {}, body }) {
    const chunks = deltas?.map((delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`) ?? [];
    const end = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;
    const type = deltas ? "text/event-stream" : "application/json";
    await this.tab.route("**/v1/chat/completions", (route) =>
      route.fulfill({ status, headers: { "content-type": type, ...headers }, body: deltas ? chunks.join("") + end : body }),
    );
  }

  async close() {
    await this.context.close();
    assert.deepEqual(this.offences, [], "the page asked elsewhere, broke its policy or failed");
  }
}
