// Reading a chart value by value: pointer, touch and arrow keys move one cursor over an n_x by n_y grid of
// values, and the tooltip tells what is there.
// SPDX-License-Identifier: Apache-2.0

// rows: [name, value, colour or nothing].
function tooltip_content(title, rows) {
  const swatch = (colour) => (colour ? [html("i", { style: `background:${colour}` })] : []);
  return [
    html("b", {}, title),
    html(
      "table",
      {},
      ...rows.map(([name, value, colour]) =>
        html("tr", {}, html("td", {}, ...swatch(colour), name), html("td", {}, value)),
      ),
    ),
  ];
}

// Beside (x, y) of the drawing, on the side where there is room.
function place_tooltip(tooltip, root, x, y) {
  const box = root.getBoundingClientRect();
  const [left, top] = [box.left + x, box.top + y];
  const beside = left + 16 + tooltip.offsetWidth < document.documentElement.clientWidth - 8;
  const tip_left = beside ? left + 16 : Math.max(8, left - 16 - tooltip.offsetWidth);
  const tip_top = clamp(
    top - tooltip.offsetHeight / 2,
    8,
    Math.max(8, window.innerHeight - tooltip.offsetHeight - 8),
  );
  tooltip.style.transform = `translate(${tip_left + window.scrollX}px, ${tip_top + window.scrollY}px)`;
}

// chart.locate(x, y) gives the indexes [i, j] at a place of the drawing, or null; chart.show(i, j) puts its mark into
// the group it returns as {mark: elements, x, y, title, rows}.
function add_cursor(root, chart) {
  const tooltip = by_id("tooltip");
  const group = svg("g", { class: "cursor" });
  root.append(group);
  root.setAttribute("tabindex", "0");
  root.setAttribute("aria-label", `${root.getAttribute("aria-label")} The arrow keys move over the values.`);
  let at = chart.start;

  const move = (place) => {
    at = place;
    const { mark, x, y, title, rows } = chart.show(...at);
    group.replaceChildren(...mark);
    tooltip.replaceChildren(...tooltip_content(title, rows));
    tooltip.hidden = false;
    place_tooltip(tooltip, root, x, y);
  };
  const leave = () => {
    group.replaceChildren();
    tooltip.hidden = true;
  };
  const follow = (event) => {
    const box = root.getBoundingClientRect();
    const place = chart.locate(event.clientX - box.left, event.clientY - box.top);
    if (place) move(place);
    else leave();
  };
  root.addEventListener("pointermove", follow);
  root.addEventListener("pointerdown", follow);
  root.addEventListener("pointerleave", leave);
  root.addEventListener("focus", () => root.matches(":focus-visible") && move(at));
  root.addEventListener("blur", leave);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    move([clamp(at[0] + step[0], 0, chart.n_x - 1), clamp(at[1] + step[1], 0, chart.n_y - 1)]);
  });
}
