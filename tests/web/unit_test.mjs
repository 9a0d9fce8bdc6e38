// Parts of the page that need no browser: the stream's parser, the tree of messages, the map's geometry, the colouring.
// They are bundled on the fly by the esbuild that builds the page.
//
//   node tests/web/unit_test.mjs --web DIR      (where web/build.mjs put packages and sources)
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { test } from "node:test";

globalThis.crypto ??= webcrypto; // node 18
const dir = resolve(process.argv[process.argv.indexOf("--web") + 1]);
const esbuild = createRequire(join(dir, "package.json"))("esbuild");
const names = ["api/sse", "store/conversation", "map/grid", "map/snapshot", "markdown/highlight", "map/units"];
const { outputFiles } = esbuild.buildSync({
  stdin: { contents: names.map((n) => `export * from "./src/${n}";`).join("\n"), resolveDir: dir },
  bundle: true,
  format: "esm",
  write: false,
  preserveSymlinks: true,
});
const page = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

async function eventsIn(pieces) {
  const found = [];
  for await (const data of page.events(streamOf(pieces))) found.push(data);
  return found;
}

function streamOf(pieces) {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

test("events are the same wherever the bytes are cut", async () => {
  const bytes = new TextEncoder().encode(': hello\r\n\r\ndata: {"a":"ü€😀"}\n\nevent: x\rdata:one\rdata: two\r\rid: 3\n\ndata: last\r\n\r\ndata: cut off');
  const expected = ['{"a":"ü€😀"}', "one\ntwo", "last"];
  for (let at = 0; at <= bytes.length; ++at) {
    assert.deepEqual(await eventsIn([bytes.slice(0, at), bytes.slice(at)]), expected, `cut at ${at}`);
  }
  assert.deepEqual(await eventsIn([...bytes].map((b) => Uint8Array.of(b))), expected);
});

test("an edited message is a sibling, and both paths remain", () => {
  let c = page.newConversation();
  const first = page.newMessage(page.ROOT, "user", "one\ntwo");
  c = page.add(c, first);
  const answer = page.newMessage(first.id, "assistant", "yes");
  c = page.add(c, answer);
  assert.equal(c.title, "one");
  const other = page.newMessage(page.ROOT, "user", "three");
  const edited = page.add(c, other);
  assert.deepEqual(page.path(edited).map((m) => m.text), ["three"]);
  assert.deepEqual(page.siblings(edited, other), [first.id, other.id]);
  assert.deepEqual(page.path(page.choose(edited, first.id)).map((m) => m.text), ["one\ntwo", "yes"]);
  assert.deepEqual(page.before(edited, answer).map((m) => m.id), [first.id]);
  assert.deepEqual(page.path(c).map((m) => m.text), ["one\ntwo", "yes"], "the old value has changed");
});

test("every cell of the map is found where it is drawn, and all are inside", () => {
  for (const [layers, experts, width] of [[1, 1, 300], [6, 16, 400], [24, 60, 335], [48, 128, 408], [48, 512, 408], [94, 128, 335], [3, 7, 20]]) {
    const grid = page.gridFor(layers, experts, width);
    assert.ok(width < 60 || grid.width <= width, `${layers} x ${experts} is ${grid.width} wide, not ${width}`);
    for (let layer = 0; layer < layers; ++layer) {
      for (let expert = 0; expert < experts; ++expert) {
        const { x, y } = page.corner(grid, layer, expert);
        assert.deepEqual(page.placeAt(grid, x, y), { layer, expert });
        assert.ok(x + grid.cellWidth <= grid.width && y + grid.cellHeight <= grid.height);
      }
    }
    assert.equal(page.placeAt(grid, -1, 0), null);
    assert.equal(page.placeAt(grid, 30, grid.height + 9), null);
  }
});

test("a map that is too short or too long is read without harm", () => {
  const map = (where, heat) => page.snapshotOf({ layers: 2, experts: 2, where: Buffer.from(where).toString("base64"), heat: Buffer.from(heat).toString("base64") });
  assert.deepEqual([...map([1], [9, 9, 9, 9, 9, 9]).where], [1, 0, 0, 0]);
  assert.deepEqual([...map([1], [9, 9, 9, 9, 9, 9]).heat], [9, 9, 9, 9]);
  assert.deepEqual(page.countWhere(map([0, 1, 2, 1], [])), [1, 2, 1]);
  assert.equal(page.snapshotOf({ layers: 0, experts: 0, where: "", heat: "" }), null);
});

test("coloured code is the code, escaped", () => {
  const plain = (html) => html.replace(/<\/?span[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"').replace(/&amp;/g, "&");
  const code = `#include <a>\n/* x < y */ int f(const char* s = "a\\"<b>") { return 0x1F + 2.5e3; } // 'end\n'c' & \`t\` "open`;
  for (const language of ["cpp", "py", "sql", "diff", "", "nonsense"]) assert.equal(plain(page.highlight(code, language)), code, language);
  assert.doesNotMatch(page.highlight("<script>", "js"), /<script/);
  assert.match(page.highlight("return 1", "c"), /^<span class="hl-word">return<\/span> <span class="hl-number">1<\/span>$/);
});

test("numbers are for people", () => {
  assert.deepEqual([0, 1023, 1536, 12 * 2 ** 30].map(page.bytes), ["0 B", "1023 B", "1.5 KiB", "12.0 GiB"]);
  assert.deepEqual([0, 0.5, 0.9981, 1].map(page.percent), ["0 %", "50 %", "99.8 %", "100 %"]);
});
