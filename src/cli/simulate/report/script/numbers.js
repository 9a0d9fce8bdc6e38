// Numbers to text and numbers to places: formats, scales, ticks. Pure; nothing here sees the page.
//
// All files of this folder are joined in the order of their names. They declare functions and constants,
// and no constant needs another file's constant to be made, so the order does not matter.
// SPDX-License-Identifier: Apache-2.0

const kNbsp = "\u00a0";
const kGiB = 2 ** 30;

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// Three significant digits, without a power of ten and without zeros at the end: 118, 9.62, 0.45.
function short_number(x) {
  if (!Number.isFinite(x)) return "–";
  const digits = x === 0 ? 0 : clamp(2 - Math.floor(Math.log10(Math.abs(x))), 0, 3);
  return Number(x.toFixed(digits)).toLocaleString("en");
}

function percent(share) {
  return `${(100 * share).toFixed(1)}${kNbsp}%`;
}
function budget_text(budget) {
  return `${Number(budget.toFixed(2))}${kNbsp}%`;
}
function with_unit(x, unit) {
  return `${short_number(x)}${kNbsp}${unit}`;
}
function gib_text(gib) {
  return `${gib.toFixed(gib < 1 ? 2 : gib < 10 ? 1 : 0)}${kNbsp}GiB`;
}
function speed_text(x) {
  return with_unit(x, "tokens/s");
}
function counted(n, word) {
  return `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
}

// A function from [from, to] to [start, end].
function linear_scale(from, to, start, end) {
  return (x) => start + ((end - start) * (x - from)) / (to - from || 1);
}
function log_scale(from, to, start, end) {
  const scale = linear_scale(Math.log(from), Math.log(to), start, end);
  return (x) => scale(Math.log(x));
}

// About n round values (1, 2 or 5 times a power of ten) within [low, high].
function round_ticks(low, high, n) {
  const rough = (high - low) / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); ++i) ticks.push(i * step);
  return ticks;
}

// low, 2 low, 4 low, ... up to high.
function doubling_ticks(low, high) {
  const ticks = [];
  for (let x = low; x <= high * 1.001; x *= 2) ticks.push(x);
  return ticks;
}

// Those of `values` that keep `gap` from each other at their places; halves, quarters, eighths... of 100
// and the two ends first, since people know these.
function spaced_ticks(values, place, gap) {
  const is_end = (x) => x === values[0] || x === values.at(-1);
  const rank = (x) => (Number.isInteger(Math.log2(100 / x)) ? 0 : is_end(x) ? 1 : 2);
  const kept = [];
  for (const x of [...values].sort((a, b) => rank(a) - rank(b))) {
    if (kept.every((other) => Math.abs(place(other) - place(x)) >= gap)) kept.push(x);
  }
  return kept.sort((a, b) => a - b);
}

function nearest_index(values, x) {
  let best = 0;
  values.forEach((value, i) => {
    if (Math.abs(value - x) < Math.abs(values[best] - x)) best = i;
  });
  return best;
}

// Places for labels that want to be at `wanted`: in the same order, `gap` apart, within [low, high]
// as far as there is room.
function spread(wanted, gap, low, high) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const places = wanted.slice();
  let least = low;
  for (const i of order) {
    places[i] = Math.max(places[i], least);
    least = places[i] + gap;
  }
  let most = high;
  for (const i of order.reverse()) {
    places[i] = Math.min(places[i], most);
    most = places[i] - gap;
  }
  return places;
}
