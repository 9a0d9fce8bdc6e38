// Fills the page: start() is called once, at its end.
// SPDX-License-Identifier: Apache-2.0

// The theme follows the system until the button is pressed; then the address keeps it: #dark, #light.
function start_theme() {
  const root = document.documentElement;
  if (["#dark", "#light"].includes(location.hash)) root.dataset.theme = location.hash.slice(1);
  by_id("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    history.replaceState(null, "", `#${root.dataset.theme}`);
  });
}

function fill_head(doc) {
  document.title = `${doc.trace.model}: sluice simulate`;
  by_id("title").textContent = doc.trace.model;
  by_id("summary").textContent = summary_text(doc);
  by_id("figures").append(
    ...key_figures(doc).map(({ label, value, remark }) =>
      html(
        "div",
        {},
        html("dt", {}, label),
        html("dd", { class: "value" }, value),
        html("dd", { class: "remark" }, remark),
      ),
    ),
  );
  by_id("speed-policy").textContent = doc.speed_map.policy;
  by_id("frontier-budget").textContent = budget_text(doc.frontier.budget);
}

// Draws into the element now and whenever its width changes.
function draw_to_width(id, draw) {
  const element = by_id(id);
  let width = 0;
  new ResizeObserver(() =>
    requestAnimationFrame(() => {
      if (element.clientWidth !== width) draw(element);
      width = element.clientWidth;
    }),
  ).observe(element);
}

function start() {
  const doc = JSON.parse(by_id("document").textContent);
  start_theme();
  fill_head(doc);

  const chosen = {};
  const add_choice = (chart, options, draw) => {
    chosen[chart] = options[0][0];
    add_switch(by_id(`${chart}-switch`), "show", options, (value) => {
      chosen[chart] = value;
      draw(by_id(`${chart}-chart`));
    });
    draw_to_width(`${chart}-chart`, draw);
  };
  add_choice(
    "curves",
    [
      ["hit_rate", "hit rate"],
      ["ms_per_token", "ms per token"],
    ],
    (element) => draw_curves(element, doc, chosen.curves),
  );
  add_choice(
    "lanes",
    doc.curves.map(({ policy }) => [policy, policy]),
    (element) => draw_lanes(element, doc, chosen.lanes),
  );
  add_choice(
    "layers",
    Object.entries(kLayerViews).map(([view, { text }]) => [view, text]),
    (element) => draw_layers(element, doc, chosen.layers),
  );
  draw_to_width("speed-chart", (element) => draw_speed(element, doc));
  draw_to_width("frontier-chart", (element) => draw_frontier(element, doc));

  for (const [chart, table] of Object.entries({
    curves: curves_table,
    speed: speed_table,
    layers: layers_table,
    frontier: frontier_table,
  })) {
    by_id(`${chart}-table`).append(table(doc));
  }
}
