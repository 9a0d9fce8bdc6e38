// The script of the report page, as it is joined at build: its pure functions, and what it draws into a fake page.
//
//   node tests/report/script_test.mjs BUILD/src/report/page_text.js
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";
import { fake_page } from "./fake_page.mjs";
import { kAwkwardDocuments, sample_document } from "./sample_document.mjs";

const kScript = `"use strict";\n${readFileSync(process.argv[2], "utf8")}`;

// The script's own names, from a context that has these globals and nothing else of a browser.
function load(names, globals = {}) {
  return vm.runInNewContext(`${kScript}\n;({ ${names.join(", ")} })`, globals);
}

const script = load([
  "linear_scale",
  "log_scale",
  "round_ticks",
  "doubling_ticks",
  "spaced_ticks",
  "spread",
  "short_number",
  "nearest_index",
  "field_at",
  "refine",
  "value_at",
  "index_of",
  "contour",
  "judge",
  "mode_at",
  "key_figures",
  "frontier_lines",
  "log_speed_fields",
]);
// Arrays of another context have another prototype, which JSON forgets.
const plain = (value) => JSON.parse(JSON.stringify(value));
const same = (got, expected) => assert.deepEqual(plain(got), plain(expected));
const near = (got, expected, what) =>
  assert.ok(Math.abs(got - expected) < 1e-9, `${what ?? ""} expected ${expected}, got ${got}`);

test("scales map their ends and their middle", () => {
  near(script.linear_scale(10, 20, 0, 100)(15), 50);
  near(script.log_scale(2, 32, 300, 0)(2), 300);
  near(script.log_scale(2, 32, 300, 0)(8), 150);
  near(script.log_scale(5, 5, 0, 100)(5), 0, "a domain of one value");
});

test("ticks are round, inside, and far enough apart", () => {
  same(
    script.round_ticks(0, 1, 5).map((x) => x.toFixed(1)),
    ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"],
  );
  same(script.round_ticks(0, 23, 4), [0, 10, 20]);
  same(script.doubling_ticks(2, 64), [2, 4, 8, 16, 32, 64]);
  same(
    script.spaced_ticks([3, 6.25, 9, 12.5, 25], (x) => x, 4),
    [6.25, 12.5, 25],
  );
});

test("labels that want one place are spread in order and stay inside", () => {
  same(script.spread([50, 50, 50], 10, 0, 100), [50, 60, 70]);
  same(script.spread([95, 99, 10], 10, 0, 100), [90, 100, 10]);
});

test("numbers have three digits and no noise", () => {
  same([0, 0.4567, 9.6049, 118.4, 1234.5, 0.5, NaN].map(script.short_number), [
    "0",
    "0.457",
    "9.6",
    "118",
    "1,235",
    "0.5",
    "–",
  ]);
  assert.equal(script.nearest_index([3, 6.25, 12.5], 8), 1);
});

test("a field is straight between its points, also when refined", () => {
  const field = [
    [0, 1, 2],
    [10, 11, 12],
  ];
  near(script.field_at(field, 1.5, 0.25), 4);
  near(script.field_at([[7]], 0, 0), 7, "a single point");
  const fine = script.refine(field, 4);
  assert.equal(fine.length, 5);
  assert.equal(fine[0].length, 9);
  near(fine[2][3], 0.75 + 5);
});

test("places on a logarithmic axis and their indexes are inverse", () => {
  const links = [2, 4, 8, 24];
  for (const t of [0, 0.3, 1, 2.5, 3]) near(script.index_of(links, script.value_at(links, t)), t);
  assert.equal(script.index_of(links, 1.9), null);
  assert.equal(script.index_of(links, 24.1), null);
});

test("the contour of a tilted plane is one straight line from edge to edge", () => {
  const plane = Array.from({ length: 6 }, (_, j) => Array.from({ length: 5 }, (_, i) => 2 * i + j));
  const lines = script.contour(plane, 5.5);
  assert.equal(lines.length, 1);
  for (const [x, y] of lines[0]) near(2 * x + y, 5.5, `point ${x}, ${y}:`);
  const ends = [lines[0][0], lines[0].at(-1)].map(([, y]) => y).sort();
  same(ends, [0, 5]);
});

test("the contour of a cone is one closed line, all of it at the radius", () => {
  const cone = Array.from({ length: 41 }, (_, j) =>
    Array.from({ length: 41 }, (_, i) => Math.hypot(i - 20, j - 20)),
  );
  const lines = script.contour(cone, 12.3);
  assert.equal(lines.length, 1);
  same(lines[0][0], lines[0].at(-1));
  for (const [x, y] of lines[0]) assert.ok(Math.abs(Math.hypot(x - 20, y - 20) - 12.3) < 0.02, `${x}, ${y}`);
});

test("the lines of a saddle cut off the two corners that its middle is unlike, and no line passes a hole", () => {
  const saddle = [
    [1, 0],
    [0, 1],
  ];
  const [below, above] = [script.contour(saddle, 0.6), script.contour(saddle, 0.4)];
  assert.equal(below.length, 2);
  assert.equal(above.length, 2);
  for (const [[x, y], [x2, y2]] of below) near(x + y, x2 + y2, "around a high corner:");
  for (const [[x, y], [x2, y2]] of above) near(x - y, x2 - y2, "around a low corner:");
  same(
    script.contour(
      [
        [0, NaN],
        [1, 1],
      ],
      0.5,
    ),
    [],
  );
  same(
    script.contour(
      [
        [0, 0],
        [0, 0],
      ],
      0.5,
    ),
    [],
  );
});

test("cache wins over compute only by more than three per cent, stream by any lead", () => {
  const winner = (compute, cache, stream) => script.judge({ compute, cache, stream }).winner;
  assert.equal(winner(100, 102.9, 50), "compute");
  assert.equal(winner(100, 103.1, 50), "cache");
  assert.equal(winner(100, 110, 110.1), "stream");
  same(script.judge({ compute: 100, cache: 150, stream: 120 }), {
    winner: "cache",
    second: "stream",
    lead: 1.25,
  });
});

test("the frontier's lines lie where the formulas of the sample say", () => {
  const { frontier } = sample_document();
  const lines = script.frontier_lines(script.log_speed_fields(frontier));
  const points = (name) =>
    lines[name]
      .flat()
      .map(([i, j]) => [script.value_at(frontier.links, i), script.value_at(frontier.cpus, j)]);
  assert.ok(points("stream").length > 10 && points("cache").length > 10);
  // 6 L = 4 sqrt(C L) where C = 9/4 L; 4 sqrt(C L) = 1.03 * 2 C where C = 4 L / 1.03^2: straight in logarithms.
  for (const [link, cpu] of points("stream")) near(cpu / link, 9 / 4);
  for (const [link, cpu] of points("cache")) near(cpu / link, 4 / 1.03 ** 2);
  assert.equal(script.mode_at(frontier, 2, 160).winner, "compute");
  assert.equal(script.mode_at(frontier, 64, 5).winner, "stream");
  assert.equal(script.mode_at(frontier, 1, 60), null);
});

test("the line of cache ends where stream wins", () => {
  const field = (f) => Array.from({ length: 5 }, (_, j) => Array.from({ length: 5 }, (_, i) => f(i, j)));
  const lines = script.frontier_lines({
    compute: field(() => 0),
    cache: field((i, j) => Math.log(1.03) + j - 1.9),
    stream: field((i) => 10 * (i - 2.5)),
  });
  const points = lines.cache.flat();
  assert.ok(points.length > 10);
  for (const [x, y] of points) {
    near(y, 1.9);
    assert.ok(x < 2.6, `${x}`);
  }
});

test("the share of the gap is counted from lru to Belady", () => {
  const doc = sample_document();
  const rates = { default: 0.675, lru: 0.6, belady: 0.8 };
  for (const { policy, points } of doc.curves) points[2].hit_rate = rates[policy];
  const figure = script.key_figures(doc).find(({ label }) => label === "From lru to Belady");
  assert.equal(figure.value, "38\u00a0%");
});

// Draws all charts, then leads every cursor through the whole chart.
function draw(options, width) {
  const { globals, elements } = fake_page(JSON.stringify(sample_document(options)), width);
  load(["start"], globals).start();
  const everything = () => Object.values(elements).flatMap((element) => [...element.all()]);
  for (const input of everything().filter(({ attributes }) => attributes.type === "radio")) {
    input.listeners.change();
    for (const root of everything().filter(({ tag }) => tag === "svg")) {
      root.listeners.focus();
      for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]) {
        root.listeners.keydown({ key, preventDefault() {} });
      }
      root.listeners.pointermove({ clientX: width / 2, clientY: 150 });
    }
  }
  return { elements, drawn: everything() };
}

for (const [name, options] of Object.entries({ "the sample": {}, ...kAwkwardDocuments })) {
  for (const width of [328, 1030]) {
    test(`${name} is drawn ${width} wide without a place or text that is no number`, () => {
      const { elements, drawn } = draw(options, width);
      for (const chart of ["curves", "lanes", "speed", "layers", "frontier"]) {
        assert.equal(elements[`${chart}-chart`].children[0]?.tag, "svg", chart);
      }
      for (const { tag, attributes, children } of drawn) {
        const seen = [...Object.values(attributes), ...children.filter((child) => typeof child !== "object")];
        for (const text of seen)
          assert.doesNotMatch(
            String(text),
            /NaN|undefined|Infinity|null/,
            `${tag} ${JSON.stringify(attributes)}`,
          );
        for (const side of ["width", "height"])
          assert.ok(!(Number(attributes[side]) < 0), `${tag} ${JSON.stringify(attributes)}`);
      }
    });
  }
}
