// The fourth chart: the plane of link and CPU speed, coloured by the fastest answer to a miss.
// SPDX-License-Identifier: Apache-2.0

const kMostLead = 2; // a lead of this factor or more has the full colour
const kKnownLinks = [
  ["PCIe 3 x16", 12.5],
  ["PCIe 4 x16", 25],
  ["PCIe 5 x16", 52],
];

// How strong the colour is where the winner leads by this factor, 0 to 1.
const lead_strength = (lead) => 0.16 + 0.74 * clamp(Math.log(lead) / Math.log(kMostLead), 0, 1);

// One picture per mode, opaque where it wins. The drawing uses them as masks, so the colours stay with the style sheet.
function mode_masks(modes, fields, plot_width, plot_height, index_at) {
  const [width, height] = [Math.ceil(plot_width / kMaskStep), Math.ceil(plot_height / kMaskStep)];
  const images = Object.fromEntries(modes.map((mode) => [mode, new ImageData(width, height)]));
  const columns = Array.from({ length: width }, (_, x) => index_at(((x + 0.5) * plot_width) / width, 0)[0]);
  for (let y = 0; y < height; ++y) {
    const row = index_at(0, ((y + 0.5) * plot_height) / height)[1];
    for (let x = 0; x < width; ++x) {
      const { winner, lead } = judge_at(fields, columns[x], row);
      images[winner].data.fill(255, 4 * (y * width + x), 4 * (y * width + x) + 3);
      images[winner].data[4 * (y * width + x) + 3] = 255 * lead_strength(lead);
    }
  }
  const data_url = (image) => {
    const canvas = html("canvas", { width, height });
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas.toDataURL();
  };
  return Object.fromEntries(modes.map((mode) => [mode, data_url(images[mode])]));
}
const kMaskStep = 3; // pixels of the page to one of the mask: the lines hide its edges

// For each mode the place for its name, which lies deepest inside its region and far from `taken`: {mode: {x, y, room}} in pixels.
function deepest_places(fields, width, height, index_at, taken) {
  const step = 20;
  const places = [];
  for (let y = step / 2; y < height; y += step) {
    for (let x = step / 2; x < width; x += step)
      places.push({ x, y, mode: judge_at(fields, ...index_at(x, y)).winner });
  }
  const all = [...taken, ...places];
  const deepest = {};
  for (const { x, y, mode } of places) {
    let room = Math.min(y, height - y, x / 2, (width - x) / 2); // names are wide
    const best = deepest[mode]?.room ?? 0;
    for (const other of all) {
      if (room <= best) break;
      if (other.mode !== mode) room = Math.min(room, Math.hypot((other.x - x) / 2, other.y - y));
    }
    if (room > best) deepest[mode] = { x, y, room };
  }
  return deepest;
}

function draw_frontier(parent, doc) {
  const { links, cpus, modes } = doc.frontier;
  const width = parent.clientWidth;
  const plot = canvas_of(
    width,
    clamp(Math.round(width * 0.62), 330, 560),
    { left: 44, right: 8, top: 44, bottom: 44 },
    "A map of the fastest of compute, cache and stream by link and CPU speed.",
  );
  const x = log_scale(links[0], links.at(-1), plot.left, plot.right);
  const y = log_scale(cpus[0], cpus.at(-1), plot.bottom, plot.top);
  const [w, h] = [Math.round(plot.right - plot.left), Math.round(plot.bottom - plot.top)];
  const value_of_x = log_inverse(links[0], links.at(-1));
  const value_of_y = log_inverse(cpus[0], cpus.at(-1));
  const inside = (values, value) => index_of(values, clamp(value, values[0], values.at(-1)));
  const index_at = (px, py) => [inside(links, value_of_x(px / w)), inside(cpus, value_of_y(1 - py / h))];
  const fields = log_speed_fields(doc.frontier);

  draw_regions(plot, modes, mode_masks(modes, fields, w, h, index_at), w, h);
  const lines = frontier_lines(fields);
  const on_plot = (line) => path_of(line.map(([i, j]) => [x(value_at(links, i)), y(value_at(cpus, j))]));
  for (const line of lines.stream) plot.root.append(svg("path", { class: "contour", d: on_plot(line) }));
  for (const line of lines.cache)
    plot.root.append(svg("path", { class: "contour second", d: on_plot(line) }));

  draw_bottom_axis(
    plot,
    doubling_ticks(links[0], links.at(-1)),
    x,
    (tick) => [short_number(tick)],
    "link, GB/s",
  );
  draw_left_axis(plot, doubling_ticks(cpus[0], cpus.at(-1)), y, short_number, "CPU reads experts at, GB/s");
  draw_known_links(plot, links, x, width < 560);
  const machine = [{ x: x(doc.machine.link_gbps) - plot.left, y: y(doc.machine.cpu_gbps) - plot.top }];
  for (const [mode, place] of Object.entries(deepest_places(fields, w, h, index_at, machine))) {
    if (place.room < 14) continue;
    plot.root.append(
      text_at(plot.left + place.x, plot.top + place.y + 5, mode_name(mode), {
        class: "region halo",
        "text-anchor": "middle",
      }),
    );
  }
  draw_machine(plot, doc.machine, x, y, links, cpus);
  add_frontier_cursor(plot, doc.frontier, x, y);
  parent.replaceChildren(plot.root, frontier_key(modes));
}

const log_inverse = (from, to) => (share) => from * (to / from) ** share;

function draw_regions(plot, modes, masks, width, height) {
  const box = { x: plot.left, y: plot.top, width, height };
  for (const mode of modes) {
    const image = svg("image", { ...box, href: masks[mode], preserveAspectRatio: "none" });
    plot.root.append(
      svg("mask", { id: `mask-${mode}`, style: "mask-type:alpha" }, image),
      svg("rect", { ...box, mask: `url(#mask-${mode})`, style: `fill:var(--mode-${mode})` }),
    );
  }
}

function draw_known_links(plot, links, x, narrow) {
  for (const [name, rate] of kKnownLinks) {
    if (rate < links[0] || rate > links.at(-1)) continue;
    plot.root.append(
      svg("line", { class: "axis", x1: x(rate), x2: x(rate), y1: plot.top - 6, y2: plot.top }),
    );
    plot.root.append(
      text_at(x(rate), plot.top - 10, narrow ? name.slice(0, 6) : name, { "text-anchor": "middle" }),
    );
  }
}

function draw_machine(plot, machine, x, y, links, cpus) {
  if (index_of(links, machine.link_gbps) === null || index_of(cpus, machine.cpu_gbps) === null) return;
  const [cx, cy] = [x(machine.link_gbps), y(machine.cpu_gbps)];
  const left = cx > (plot.left + plot.right) / 2;
  plot.root.append(
    svg("circle", { class: "machine", cx, cy, r: 6 }),
    text_at(cx + (left ? -12 : 12), cy + 4, "this machine", {
      class: "strong halo",
      "text-anchor": left ? "end" : "start",
    }),
  );
}

function add_frontier_cursor(plot, frontier, x, y) {
  const { links, cpus, modes, tokens_per_s, copy_cost, mb_per_token } = frontier;
  const slow_last = (j) => cpus.length - 1 - j; // rows from the top
  add_cursor(plot.root, {
    n_x: links.length,
    n_y: cpus.length,
    start: [0, 0],
    locate: (px, py) => [nearest_index(links.map(x), px), slow_last(nearest_index(cpus.map(y), py))],
    show: (i, j) => {
      const cpu = slow_last(j);
      const [cx, cy] = [x(links[i]), y(cpus[cpu])];
      return {
        mark: [svg("circle", { class: "ring", cx, cy, r: 7 })],
        x: cx,
        y: cy,
        title: `link ${with_unit(links[i], "GB/s")}, CPU ${with_unit(cpus[cpu], "GB/s")}`,
        rows: [
          ...modes.map((mode) => [
            mode_name(mode),
            speed_text(tokens_per_s[mode][i][cpu]),
            `var(--mode-${mode})`,
          ]),
          ["Cache: best copy cost", short_number(copy_cost[i][cpu])],
          ["Cache: copied a token", with_unit(mb_per_token[i][cpu], "MB")],
        ],
      };
    },
  });
}

function frontier_key(modes) {
  const ramp = (mode) =>
    [1, kMostLead].map(
      (lead) => `color-mix(in srgb, var(--paper), var(--mode-${mode}) ${100 * lead_strength(lead)}%)`,
    );
  return key_list([
    ...modes.map((mode) => [
      { class: "ramp", style: `background:linear-gradient(to right,${ramp(mode)})` },
      mode_name(mode),
    ]),
    [null, `pale: no lead; strong: ${kMostLead} times as fast as the second, or more`],
    [{ class: "stroke" }, "Stream overtakes both"],
    [{ class: "stroke second" }, "Cache gains 3\u00a0% over Compute"],
  ]);
}

function frontier_table({ frontier: { links, cpus, modes, tokens_per_s, copy_cost, mb_per_token } }) {
  return number_table(
    ["link GB/s", "CPU GB/s", ...modes.map((mode) => `${mode}, tokens/s`), "best copy cost", "MB copied"],
    links.flatMap((link, l) =>
      cpus.map((cpu, c) => [
        short_number(link),
        short_number(cpu),
        ...modes.map((mode) => tokens_per_s[mode][l][c].toFixed(1)),
        short_number(copy_cost[l][c]),
        mb_per_token[l][c].toFixed(1),
      ]),
    ),
  );
}
