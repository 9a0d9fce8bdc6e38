// The second chart: tokens per second over VRAM and link. On narrow paper the two axes change places.
// SPDX-License-Identifier: Apache-2.0

function draw_speed(parent, { speed_map }) {
  const { budgets, vram_gib, links, tokens_per_s, used_budget } = speed_map;
  const narrow = parent.clientWidth < 600;
  const [n_x, n_y, margin] = narrow
    ? [links.length, budgets.length, { left: 84, right: 0, top: 26, bottom: 42 }]
    : [budgets.length, links.length, { left: 40, right: 0, top: 26, bottom: 58 }];
  // Column i and row j of the map as [link, budget]; the fastest link is on top.
  const at = narrow ? (i, j) => [i, j] : (i, j) => [links.length - 1 - j, i];
  const speed = (i, j) => at(i, j).reduce((values, index) => values[index], tokens_per_s);
  const all = tokens_per_s.flat();
  const share = log_scale(Math.min(...all), Math.max(...all), 0, 1);

  const cell_height = 30;
  const plot = canvas_of(
    parent.clientWidth,
    margin.top + n_y * cell_height + margin.bottom,
    margin,
    "A map of tokens per second by expert budget and link speed.",
  );
  const map = {
    n_x,
    n_y,
    left: plot.left,
    top: plot.top,
    cell_width: (plot.right - plot.left) / n_x,
    cell_height,
    colour: (i, j) => heat_colour(share(speed(i, j))),
    high: (i, j) => share(speed(i, j)) > 0.6,
    number: (i, j) =>
      speed(i, j) < 100 ? short_number(Number(speed(i, j).toPrecision(2))) : Math.round(speed(i, j)),
  };
  draw_cells(plot.root, map);
  draw_speed_axes(plot, map, speed_map, narrow);
  add_cell_cursor(plot.root, map, [0, 0], (i, j) => {
    const [link, budget] = at(i, j);
    return {
      title: speed_text(speed(i, j)),
      rows: [
        ["experts in VRAM", budget_text(budgets[budget])],
        ["VRAM for them", gib_text(vram_gib[budget])],
        ["link", with_unit(links[link], "GB/s")],
        ["a token", with_unit(1000 / speed(i, j), "ms")],
        // More slots can mean more copies than pay; then the rest of the VRAM stays empty.
        ...(used_budget[link][budget] < budgets[budget]
          ? [["fastest with only", budget_text(used_budget[link][budget])]]
          : []),
      ],
    };
  });
  parent.replaceChildren(
    plot.root,
    ramp_key(heat_colour, short_number(Math.min(...all)), speed_text(Math.max(...all))),
  );
}

function draw_speed_axes(plot, map, { budgets, vram_gib, links }, narrow) {
  const columns = Array.from({ length: map.n_x }, (_, i) => i);
  const rows = Array.from({ length: map.n_y }, (_, j) => j);
  const x = (i) => cell_centre(map, i, 0)[0];
  const y = (j) => cell_centre(map, 0, j)[1];
  if (narrow) {
    draw_bottom_axis(plot, columns, x, (i) => [short_number(links[i])], "link, GB/s");
    draw_left_axis(plot, rows, y, (j) => gib_text(vram_gib[j]).split(kNbsp)[0], "experts in VRAM, GiB");
    rows.forEach((j) => plot.root.append(text_at(0, y(j) + 4, budget_text(budgets[j]))));
  } else {
    draw_bottom_axis(plot, columns, x, (i) => [budget_text(budgets[i]), gib_text(vram_gib[i])], kBudgetTitle);
    draw_left_axis(plot, rows, y, (j) => short_number(links.at(-1 - j)), "link, GB/s");
  }
}

function speed_table({ speed_map: { budgets, vram_gib, links, tokens_per_s } }) {
  return number_table(
    ["budget %", "GiB", ...links.map((link) => with_unit(link, "GB/s"))],
    budgets.map((budget, b) => [
      Number(budget.toFixed(2)),
      vram_gib[b].toFixed(2),
      ...links.map((_, l) => tokens_per_s[l][b].toFixed(1)),
    ]),
  );
}
