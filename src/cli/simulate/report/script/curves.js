// The first chart: a line per policy over the budget, as hit rate or as time.
// SPDX-License-Identifier: Apache-2.0

const kDashes = ["", "7 3", "2 3", "9 3 2 3", "5 3 1 3 1 3", "12 4"];
const kBudgetTitle = "share of all experts in VRAM, and its size";
const kMeasures = {
  hit_rate: {
    title: "hit rate",
    text: percent,
    tick: (x) => `${Math.round(100 * x)}${kNbsp}%`,
    from_zero: false,
  },
  ms_per_token: {
    title: "ms of expert work per token",
    text: (x) => with_unit(x, "ms"),
    tick: short_number,
    from_zero: true,
  },
};

// Colour, dashes and class of each policy; Belady is no policy but the ceiling.
function curve_styles(curves) {
  const named = curves.filter((curve) => curve.policy !== "belady").map((curve) => curve.policy);
  const order = [...named].sort((a, b) => (b === "default") - (a === "default"));
  return Object.fromEntries(
    curves.map(({ policy }) => {
      const i = order.indexOf(policy);
      if (i < 0) return [policy, { colour: "var(--ceiling)", dash: "3 4", main: false }];
      return [
        policy,
        { colour: `var(--policy-${i % 6})`, dash: kDashes[i % 6], main: i === 0 && policy === "default" },
      ];
    }),
  );
}

// Of hits Belady's rule is the ceiling; of time it is not, since it copies without asking what that costs.
function curve_label(policy, measure) {
  if (policy !== "belady") return policy;
  return measure === "hit_rate" ? "Belady (ceiling)" : "Belady";
}

function curve_scales(plot, curves, measure) {
  const points = curves.flatMap((curve) => curve.points);
  const budgets = points.map((point) => point.budget);
  const values = points.map((point) => point[measure]);
  const ticks = round_ticks(kMeasures[measure].from_zero ? 0 : Math.min(...values), Math.max(...values), 5);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
  const low = kMeasures[measure].from_zero ? 0 : Math.max(0, Math.floor(Math.min(...values) / step) * step);
  const high = Math.min(
    measure === "hit_rate" ? 1 : Infinity,
    Math.ceil(Math.max(...values) / step - 1e-9) * step,
  );
  return {
    x: log_scale(Math.min(...budgets), Math.max(...budgets), plot.left, plot.right - 8),
    y: linear_scale(low, high, plot.bottom, plot.top),
    ticks: round_ticks(low, high, 5),
  };
}

function draw_curves(parent, doc, measure) {
  const { curves, trace } = doc;
  const width = parent.clientWidth;
  const narrow = width < 560;
  const margin = { left: narrow ? 84 : 126, right: narrow ? 40 : 48, top: 28, bottom: 58 };
  const { title, tick } = kMeasures[measure];
  const plot = canvas_of(
    width,
    narrow ? 340 : 440,
    margin,
    `Lines of ${title} over the budget, one per policy.`,
  );
  const scales = curve_scales(plot, curves, measure);
  const budgets = curves[0].points.map((point) => point.budget);
  draw_value_axis(plot, scales, tick, title);
  draw_bottom_axis(
    plot,
    spaced_ticks(budgets, scales.x, narrow ? 56 : 60),
    scales.x,
    (budget) => [budget_text(budget), gib_text(budget_gib(trace, budget))],
    kBudgetTitle,
  );

  const styles = curve_styles(curves);
  draw_curve_lines(plot, curves, styles, scales, measure, narrow);
  add_curve_cursor(plot, doc, styles, scales, measure);
  parent.replaceChildren(plot.root);
}

function add_curve_cursor(plot, { curves, trace }, styles, scales, measure) {
  const budgets = curves[0].points.map((point) => point.budget);
  const best_first = measure === "hit_rate" ? (a, b) => b.value - a.value : (a, b) => a.value - b.value;
  add_cursor(plot.root, {
    n_x: budgets.length,
    n_y: 1,
    start: [nearest_index(budgets, kShownBudget), 0],
    locate: (x) => [nearest_index(budgets.map(scales.x), x), 0],
    show: (i) => {
      const x = scales.x(budgets[i]);
      const at = curves.map(({ policy, points }) => ({
        policy,
        value: points[i][measure],
        colour: styles[policy].colour,
      }));
      at.sort(best_first);
      const dots = at.map(({ value, colour }) =>
        svg("circle", { cx: x, cy: scales.y(value), r: 3.5, style: `fill:${colour}` }),
      );
      return {
        mark: [svg("line", { x1: x, x2: x, y1: plot.top, y2: plot.bottom }), ...dots],
        x,
        y: scales.y(at[Math.floor(at.length / 2)].value),
        title: `${budget_text(budgets[i])} of all experts, ${gib_text(budget_gib(trace, budgets[i]))}`,
        rows: at.map(({ policy, value, colour }) => [
          curve_label(policy, measure),
          kMeasures[measure].text(value),
          colour,
        ]),
      };
    },
  });
}

// On the right: the left is for the names of the lines.
function draw_value_axis(plot, { y, ticks }, text_of, title) {
  for (const tick of ticks) {
    plot.root.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(tick), y2: y(tick) }));
    plot.root.append(text_at(plot.width, y(tick) + 4, text_of(tick), { "text-anchor": "end" }));
  }
  plot.root.append(text_at(plot.width, 12, title, { class: "title", "text-anchor": "end" }));
}

// The lines, ours last and so on top, and their names at the left end, where they lie farthest apart.
function draw_curve_lines(plot, curves, styles, scales, measure, narrow) {
  const ends = curves.map((curve) => scales.y(curve.points[0][measure]));
  const places = spread(ends, 16, plot.top + 4, plot.bottom - 4);
  const order = curves
    .map((_, i) => i)
    .sort((a, b) => styles[curves[a].policy].main - styles[curves[b].policy].main);
  for (const i of order) {
    const { policy, points } = curves[i];
    const { colour, dash, main } = styles[policy];
    const d = path_of(points.map((point) => [scales.x(point.budget), scales.y(point[measure])]));
    plot.root.append(
      svg("path", {
        class: main ? "curve main" : "curve",
        d,
        style: `stroke:${colour}`,
        "stroke-dasharray": dash,
      }),
    );
    const leader = path_of([
      [plot.left - 3, ends[i]],
      [plot.left - 13, places[i]],
    ]);
    plot.root.append(svg("path", { class: "leader", d: leader, style: `stroke:${colour}` }));
    const name = curve_label(policy, narrow ? "" : measure);
    plot.root.append(
      text_at(plot.left - 17, places[i] + 4, name, {
        style: `fill:${colour}`,
        class: main ? "strong" : "",
        "text-anchor": "end",
      }),
    );
  }
}

function curves_table({ curves, trace }) {
  const head = [
    "policy",
    "budget %",
    "GiB",
    "hit rate %",
    "MB copied a token",
    "ms",
    "GPU ms",
    "CPU ms",
    "handshake ms",
    "copy ms",
    "copy wait ms",
  ];
  const rows = curves.flatMap(({ policy, points }) =>
    points.map((point) => [
      policy,
      Number(point.budget.toFixed(2)),
      budget_gib(trace, point.budget).toFixed(2),
      (100 * point.hit_rate).toFixed(2),
      ...["mb_per_token", "ms_per_token", "gpu_ms", "cpu_ms", "handshake_ms", "copy_ms", "copy_wait_ms"].map(
        (name) => point[name].toFixed(2),
      ),
    ]),
  );
  return number_table(head, rows);
}
