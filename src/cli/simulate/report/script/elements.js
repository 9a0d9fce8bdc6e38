// Makes elements of the page and of its drawings, and the few shapes that all charts share.
// SPDX-License-Identifier: Apache-2.0

function fill_in(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const html = (tag, attributes = {}, ...children) =>
  fill_in(document.createElement(tag), attributes, children);

// The namespace comes from the drawing that page.html holds.
const svg = (tag, attributes = {}, ...children) =>
  fill_in(document.createElementNS(document.querySelector("svg").namespaceURI, tag), attributes, children);

const by_id = (id) => document.getElementById(id);

// A drawing with room for axes: {root, width, height (of all), left, right, top, bottom (of the plot)}.
function canvas_of(width, height, margin, label) {
  const root = svg("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
  });
  return {
    root,
    width,
    height,
    left: margin.left,
    right: width - margin.right,
    top: margin.top,
    bottom: height - margin.bottom,
  };
}

function text_at(x, y, text, attributes = {}) {
  return svg("text", { x, y, ...attributes }, text);
}

// Ticks below a plot: one line of text each, or several.
function draw_bottom_axis(plot, ticks, place, lines_of, title) {
  for (const tick of ticks) {
    const x = place(tick);
    plot.root.append(svg("line", { class: "axis", x1: x, x2: x, y1: plot.bottom, y2: plot.bottom + 4 }));
    lines_of(tick).forEach((line, i) =>
      plot.root.append(text_at(x, plot.bottom + 17 + 14 * i, line, { "text-anchor": "middle" })),
    );
  }
  const x = (plot.left + plot.right) / 2;
  plot.root.append(text_at(x, plot.height - 6, title, { class: "title", "text-anchor": "middle" }));
}

function draw_left_axis(plot, ticks, place, text_of, title) {
  for (const tick of ticks) {
    const y = place(tick);
    plot.root.append(svg("line", { class: "axis", x1: plot.left - 4, x2: plot.left, y1: y, y2: y }));
    plot.root.append(text_at(plot.left - 8, y + 4, text_of(tick), { "text-anchor": "end" }));
  }
  plot.root.append(text_at(0, 12, title, { class: "title" }));
}

const path_of = (points) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// entries: [attributes of the sample or null, text].
function key_list(entries) {
  return html(
    "ul",
    { class: "keys" },
    ...entries.map(([attributes, text]) =>
      html("li", {}, ...(attributes ? [html("i", attributes)] : []), text),
    ),
  );
}

function number_table(head, rows) {
  const cells = (tag, values) => values.map((value) => html(tag, {}, value));
  return html(
    "table",
    {},
    html("thead", {}, html("tr", {}, ...cells("th", head))),
    html("tbody", {}, ...rows.map((row) => html("tr", {}, ...cells("td", row)))),
  );
}

// One of several options, the first to begin with: calls `choose(value)` at every change.
function add_switch(parent, title, options, choose) {
  const name = `${parent.id}-${title}`;
  const set = html("fieldset", {}, html("legend", {}, title));
  options.forEach(([value, text], i) => {
    const input = html("input", { type: "radio", name, value });
    input.checked = i === 0;
    input.addEventListener("change", () => choose(value));
    set.append(html("label", {}, input, html("span", {}, text)));
  });
  parent.append(set);
}
