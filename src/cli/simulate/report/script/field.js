// Values on a grid: values between its points, and the lines of one value (marching squares).
// A field is an array of rows; a point on it is [column, row], whole numbers at the grid's points. Pure.
// SPDX-License-Identifier: Apache-2.0

const map_field = (field, f) => field.map((row, j) => row.map((value, i) => f(value, i, j)));

// Between the four points around (x, y), bilinear. Called for every pixel of a map.
function field_at(field, x, y) {
  const i = Math.max(0, Math.min(Math.floor(x), field[0].length - 2));
  const j = Math.max(0, Math.min(Math.floor(y), field.length - 2));
  const [row, next_row] = [field[j], field[j + 1] ?? field[j]];
  const next = row.length > 1 ? i + 1 : i;
  const above = row[i] + (x - i) * (row[next] - row[i]);
  const below = next_row[i] + (x - i) * (next_row[next] - next_row[i]);
  return above + (y - j) * (below - above);
}

// The same field with `factor` times as many steps in each direction.
function refine(field, factor) {
  const n_rows = (field.length - 1) * factor + 1;
  const n_columns = (field[0].length - 1) * factor + 1;
  return Array.from({ length: n_rows }, (_, j) =>
    Array.from({ length: n_columns }, (_, i) => field_at(field, i / factor, j / factor)),
  );
}

// The place of index t (not whole) among values that are evenly spaced in their logarithm from one to the next.
function value_at(values, t) {
  const i = clamp(Math.floor(t), 0, Math.max(0, values.length - 2));
  const next = values[i + 1] ?? values[i];
  return values[i] * (next / values[i]) ** (t - i);
}

// The inverse of value_at; null outside the values.
function index_of(values, x) {
  if (x < values[0] || x > values.at(-1)) return null;
  const i = clamp(
    values.findLastIndex((value) => value <= x),
    0,
    Math.max(0, values.length - 2),
  );
  const step = Math.log((values[i + 1] ?? values[i]) / values[i]);
  return step === 0 ? i : i + Math.log(x / values[i]) / step;
}

// The lines on which the field is `level`: arrays of points; a closed one ends where it began. Squares
// with a value that is not a number have none.
function contour(field, level) {
  const links = new Map(); // name of a crossed edge -> {point, neighbours: names}
  const cross = (i, j, i2, j2) => {
    const name = `${i},${j},${i2},${j2}`;
    if (!links.has(name)) {
      const [a, b] = [field[j][i], field[j2][i2]];
      const t = (level - a) / (b - a);
      links.set(name, { point: [i + t * (i2 - i), j + t * (j2 - j)], neighbours: [] });
    }
    return name;
  };
  for (let j = 0; j + 1 < field.length; ++j) {
    for (let i = 0; i + 1 < field[0].length; ++i) {
      for (const [a, b] of square_segments(field, level, i, j)) {
        const [from, to] = [cross(...a), cross(...b)];
        links.get(from).neighbours.push(to);
        links.get(to).neighbours.push(from);
      }
    }
  }
  return walk(links);
}

// Which pairs of a square's edges a line joins. Edges go from the lower to the higher index, so that
// neighbouring squares name a common edge alike.
function square_segments(field, level, i, j) {
  const corners = [field[j][i], field[j][i + 1], field[j + 1][i + 1], field[j + 1][i]];
  if (corners.some(Number.isNaN)) return [];
  const [top, right, bottom, left] = [
    [i, j, i + 1, j],
    [i + 1, j, i + 1, j + 1],
    [i, j + 1, i + 1, j + 1],
    [i, j, i, j + 1],
  ];
  const inside = corners.map((value) => value >= level);
  const crossed = [top, right, bottom, left].filter((_, k) => inside[k] !== inside[(k + 1) % 4]);
  if (crossed.length < 4) return crossed.length === 2 ? [crossed] : [];
  // A saddle: the middle says which two corners belong together.
  const middle_inside = corners.reduce((sum, value) => sum + value, 0) / 4 >= level;
  return middle_inside === inside[0]
    ? [
        [top, right],
        [bottom, left],
      ]
    : [
        [top, left],
        [bottom, right],
      ];
}

// Follows the links from edge to edge, open lines from their ends first.
function walk(links) {
  const lines = [];
  const starts = [...links.keys()].sort(
    (a, b) => links.get(a).neighbours.length - links.get(b).neighbours.length,
  );
  for (const start of starts) {
    let name = start;
    const line = [];
    while (name !== undefined) {
      const link = links.get(name);
      line.push(link.point);
      const next = link.neighbours.pop();
      if (next === undefined) break;
      const back = links.get(next).neighbours;
      back.splice(back.indexOf(name), 1);
      name = next;
    }
    if (line.length > 1) lines.push(line);
  }
  return lines;
}
