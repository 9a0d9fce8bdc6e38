// The small chart below the curves: how long GPU, CPU and link are busy in a token, for one policy.
// SPDX-License-Identifier: Apache-2.0

// Three lanes of a budget; each is [from, to, colour] in milliseconds, several times.
function lanes_of(point) {
  const hidden = point.copy_ms - point.copy_wait_ms;
  return [
    [[0, point.gpu_ms, "gpu"]],
    [
      [0, point.cpu_ms, "cpu"],
      [point.cpu_ms, point.cpu_ms + point.handshake_ms, "handshake"],
    ],
    [
      [0, hidden, "copy"],
      [hidden, point.copy_ms, "wait"],
    ],
  ];
}

const kLaneNames = {
  gpu: "GPU: hits",
  cpu: "CPU: misses",
  handshake: "CPU: handshakes",
  copy: "link: copies, hidden",
  wait: "link: copies, waited for",
};

const [kLane, kLaneRow] = [6, 28]; // heights of a lane and of a budget's three, with their gap

function draw_lanes(parent, { curves }, policy) {
  const { points } = curves.find((curve) => curve.policy === policy);
  const plot = canvas_of(
    parent.clientWidth,
    26 + kLaneRow * points.length + 44,
    { left: 64, right: 16, top: 22, bottom: 44 },
    `Bars of the milliseconds that GPU, CPU and link work in a token, by budget, for the policy ${policy}.`,
  );
  // The same scale for all policies, so that a change of policy shows.
  const ends = curves
    .flatMap((curve) => curve.points)
    .map((point) =>
      Math.max(point.ms_per_token, point.gpu_ms, point.cpu_ms + point.handshake_ms, point.copy_ms),
    );
  const longest = Math.max(...ends);
  const x = linear_scale(0, longest * 1.02, plot.left, plot.right);
  const top_of = (i) => plot.top + 4 + kLaneRow * i;
  draw_time_axis(plot, x, longest);
  points.forEach((point, i) => draw_lane_bars(plot, point, x, top_of(i)));
  add_lane_cursor(plot, policy, points, x, top_of);
  const keys = Object.entries(kLaneNames).map(([name, text]) => [
    { style: `background:var(--lane-${name})` },
    text,
  ]);
  parent.replaceChildren(plot.root, key_list([...keys, [{ class: "mark" }, "the token"]]));
}

function draw_time_axis(plot, x, longest) {
  const ticks = round_ticks(0, longest, plot.width < 560 ? 4 : 8);
  for (const tick of ticks) {
    plot.root.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: plot.top, y2: plot.bottom }));
  }
  draw_bottom_axis(plot, ticks, x, (tick) => [short_number(tick)], "ms per token");
  plot.root.append(text_at(0, 12, "budget", { class: "title" }));
}

function draw_lane_bars(plot, point, x, top) {
  const bar = (from, to, y, height, colour) =>
    plot.root.append(
      svg("rect", { x: from, y, width: Math.max(0, to - from), height, style: `fill:var(--${colour})` }),
    );
  plot.root.append(text_at(plot.left - 8, top + 15, budget_text(point.budget), { "text-anchor": "end" }));
  lanes_of(point).forEach((parts, k) => {
    for (const [from, to, name] of parts) bar(x(from), x(to), top + k * (kLane + 1), kLane, `lane-${name}`);
  });
  bar(x(point.ms_per_token) - 1, x(point.ms_per_token) + 1, top - 2, 3 * kLane + 6, "ink");
}

function add_lane_cursor(plot, policy, points, x, top_of) {
  const budgets = points.map((point) => point.budget);
  const box = { x: plot.left - 2, width: plot.right - plot.left + 4, height: kLaneRow - 1, rx: 3 };
  const part_row = ([from, to, name]) => [
    kLaneNames[name],
    with_unit(to - from, "ms"),
    `var(--lane-${name})`,
  ];
  add_cursor(plot.root, {
    n_x: 1,
    n_y: points.length,
    start: [0, nearest_index(budgets, kShownBudget)],
    locate: (_, y) => [0, clamp(Math.floor((y - plot.top) / kLaneRow), 0, points.length - 1)],
    show: (_, i) => ({
      mark: [svg("rect", { ...box, y: top_of(i) - 4 })],
      x: x(points[i].ms_per_token),
      y: top_of(i) + kLaneRow / 2,
      title: `${policy}, ${budget_text(budgets[i])} of all experts`,
      rows: [["token", with_unit(points[i].ms_per_token, "ms")], ...lanes_of(points[i]).flat().map(part_row)],
    }),
  });
}
