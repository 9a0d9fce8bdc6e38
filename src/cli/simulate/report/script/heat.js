// A map of coloured cells, with or without a number in each; the speed map and the layer map are two of them.
// SPDX-License-Identifier: Apache-2.0

// The colour of a share from 0 to 1; the style sheet knows low, middle and high, light and dark.
function heat_colour(share) {
  const [from, to, t] = share < 0.5 ? ["low", "mid", 2 * share] : ["mid", "high", 2 * share - 1];
  return `color-mix(in oklab, var(--heat-${from}), var(--heat-${to}) ${(100 * t).toFixed(1)}%)`;
}

// The colour of a share from -1 to 1.
function lead_colour(share) {
  return `color-mix(in oklab, var(--none), var(--${share < 0 ? "below" : "above"}) ${(100 * Math.abs(share)).toFixed(1)}%)`;
}

// map: {n_x, n_y, left, top, cell_width, cell_height, colour(i, j), number(i, j) or nothing, high(i, j): its ink is for a high cell}.
function draw_cells(root, map) {
  const gap = map.cell_width > 12 ? 1 : 0;
  for (let j = 0; j < map.n_y; ++j) {
    for (let i = 0; i < map.n_x; ++i) {
      const [x, y] = [map.left + i * map.cell_width, map.top + j * map.cell_height];
      // Without a gap cells overlap a little, or the paper would shine through.
      root.append(
        svg("rect", {
          x,
          y,
          width: map.cell_width - gap + (gap ? 0 : 0.5),
          height: map.cell_height - 1,
          rx: gap ? 2 : 0,
          style: `fill:${map.colour(i, j)}`,
        }),
      );
      if (!map.number) continue;
      root.append(
        text_at(x + map.cell_width / 2, y + map.cell_height / 2 + 4, map.number(i, j), {
          "text-anchor": "middle",
          style: `fill:var(--ink-on-${map.high(i, j) ? "high" : "low"});font-size:${map.cell_width < 34 ? 10.5 : 12}px`,
        }),
      );
    }
  }
}

const cell_centre = (map, i, j) => [
  map.left + (i + 0.5) * map.cell_width,
  map.top + (j + 0.5) * map.cell_height,
];

// describe(i, j) gives {title, rows} of the tooltip.
function add_cell_cursor(root, map, start, describe) {
  add_cursor(root, {
    n_x: map.n_x,
    n_y: map.n_y,
    start,
    locate: (x, y) => {
      const [i, j] = [
        Math.floor((x - map.left) / map.cell_width),
        Math.floor((y - map.top) / map.cell_height),
      ];
      return i >= 0 && j >= 0 && i < map.n_x && j < map.n_y ? [i, j] : null;
    },
    show: (i, j) => {
      const [x, y] = cell_centre(map, i, j);
      const mark = svg("rect", {
        x: x - map.cell_width / 2,
        y: y - map.cell_height / 2,
        width: map.cell_width,
        height: map.cell_height,
        rx: 2,
      });
      return { mark: [mark], x: x + map.cell_width / 2, y, ...describe(i, j) };
    },
  });
}

function ramp_key(colour, from, to) {
  const stops = Array.from({ length: 9 }, (_, i) => colour(i / 8)).join(",");
  return key_list([
    [{ class: "ramp", style: `background:linear-gradient(to right in oklab,${stops})` }, `${from} to ${to}`],
  ]);
}
