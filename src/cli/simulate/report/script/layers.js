// The third chart: hit rate by layer and budget, and below it how evenly each layer uses its experts.
// SPDX-License-Identifier: Apache-2.0

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// What a cell shows: the hit rate itself, or how far it lies from the mean of its budget.
const kLayerViews = {
  rate: {
    text: "hit rate",
    values: (rows) => rows,
    colour: (x, low, high) => heat_colour((x - low) / (high - low || 1)),
    key: (low, high) => ramp_key(heat_colour, percent(low), percent(high)),
  },
  lead: {
    text: "against the mean layer",
    values: (rows) => rows.map((row) => row.map((rate) => rate - mean(row))),
    colour: (x, low, high) => lead_colour(x / (Math.max(-low, high) || 1)),
    key: (low, high) => {
      const most = 100 * Math.max(-low, high);
      return ramp_key((t) => lead_colour(2 * t - 1), `−${most.toFixed(1)}`, `+${most.toFixed(1)} points`);
    },
  },
};

function draw_layers(parent, { layers: { budgets, hit_rate, use_entropy }, trace }, view) {
  const { values, colour, key } = kLayerViews[view];
  const shown = values(hit_rate);
  const range = [Math.min(...shown.flat()), Math.max(...shown.flat())];
  const n_layers = use_entropy.length;
  const large_first = (j) => budgets.length - 1 - j;
  const [cell_height, strip] = [22, 54];
  const width = parent.clientWidth;
  const map_bottom = 26 + cell_height * budgets.length;
  const plot = canvas_of(
    width,
    map_bottom + 34 + strip + 44,
    { left: 64, right: 4, top: 26, bottom: 44 },
    "A map of the hit rate by layer and budget, and bars of the entropy of use by layer.",
  );
  const map = {
    n_x: n_layers,
    n_y: budgets.length,
    left: plot.left,
    top: plot.top,
    cell_width: (plot.right - plot.left) / n_layers,
    cell_height,
    colour: (i, j) => colour(shown[large_first(j)][i], ...range),
  };
  draw_cells(plot.root, map);
  draw_left_axis(
    plot,
    budgets.map((_, j) => j),
    (j) => cell_centre(map, 0, j)[1],
    (j) => budget_text(budgets[large_first(j)]),
    "budget",
  );
  draw_entropy(plot, map, map_bottom + 34, strip, use_entropy, trace.n_experts);
  const step = Math.max(1, Math.ceil(26 / map.cell_width / 4) * 4);
  draw_bottom_axis(
    plot,
    use_entropy.map((_, i) => i).filter((i) => i % step === 0),
    (i) => cell_centre(map, i, 0)[0],
    (i) => [i],
    "layer",
  );
  add_cell_cursor(plot.root, map, [0, 0], (i, j) => {
    const budget = large_first(j);
    const lead = 100 * (hit_rate[budget][i] - mean(hit_rate[budget]));
    return {
      title: `layer ${i}, ${budget_text(budgets[budget])} of all experts`,
      rows: [
        ["hit rate", percent(hit_rate[budget][i])],
        ["against the mean", `${lead < 0 ? "" : "+"}${lead.toFixed(1)} points`],
        ["entropy of use", with_unit(use_entropy[i], "bits")],
        ["experts in effective use", Math.round(effective_experts(use_entropy[i]))],
      ],
    };
  });
  parent.replaceChildren(plot.root, key(...range));
}

// The entropy as the number of experts that, used alike, would have it.
const effective_experts = (bits) => 2 ** bits;

// Bars from 0 to all experts.
function draw_entropy(plot, map, top, height, use_entropy, n_experts) {
  const y = linear_scale(0, n_experts, top + height, top);
  plot.root.append(text_at(0, top - 12, "experts in effective use (two to the entropy)", { class: "title" }));
  for (const value of [0, n_experts]) {
    plot.root.append(
      svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(value), y2: y(value) }),
    );
    plot.root.append(text_at(plot.left - 8, y(value) + 4, value, { "text-anchor": "end" }));
  }
  use_entropy.map(effective_experts).forEach((n, i) =>
    plot.root.append(
      svg("rect", {
        x: map.left + i * map.cell_width,
        y: y(n),
        width: Math.max(1, map.cell_width - 1),
        height: top + height - y(n),
        style: "fill:var(--lane-wait)",
      }),
    ),
  );
}

function layers_table({ layers: { budgets, hit_rate, use_entropy } }) {
  return number_table(
    ["layer", "entropy, bits", ...budgets.map((budget) => `${budget_text(budget)}`)],
    use_entropy.map((bits, l) => [l, bits.toFixed(2), ...budgets.map((_, b) => percent(hit_rate[b][l]))]),
  );
}
