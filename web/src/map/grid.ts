// Where on the canvas each expert is. A layer is a band of cells, folded into several lines where its experts are too many
// for the width. Pure geometry, in CSS pixels.
// SPDX-License-Identifier: Apache-2.0

export interface Grid {
  layers: number;
  experts: number;
  columns: number; // cells in a line
  lines: number; // of a layer
  cellWidth: number; // with its gap
  cellHeight: number;
  gap: number;
  bandGap: number; // between layers
  left: number; // room for the layers' numbers
  width: number;
  height: number;
}

export interface Place {
  layer: number;
  expert: number;
}

const MIN_WIDTH = 3;
const MIN_HEIGHT = 4;
const MAX_SIDE = 24;
const WANTED_HEIGHT = 350; // of the whole
const LEFT = 22;

function clamp(x: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, x));
}

/** The fewest lines that leave cells of a width one can see; their height is what the whole has room for. */
export function gridFor(layers: number, experts: number, width: number): Grid {
  const lines = Math.max(1, Math.ceil((experts * MIN_WIDTH) / Math.max(MIN_WIDTH, width - LEFT)));
  const columns = Math.ceil(experts / lines);
  const cellWidth = clamp(Math.floor((width - LEFT) / columns), 1, MAX_SIDE);
  const cellHeight = clamp(Math.floor(WANTED_HEIGHT / (layers * lines)), MIN_HEIGHT, Math.min(MAX_SIDE, Math.ceil(2.4 * cellWidth)));
  const gap = cellWidth >= 12 ? 2 : cellHeight >= 4 ? 1 : 0;
  const bandGap = lines > 1 ? 3 : 0;
  const height = layers * (lines * cellHeight + bandGap) - bandGap;
  return { layers, experts, columns, lines, cellWidth, cellHeight, gap, bandGap, left: LEFT, width: LEFT + columns * cellWidth, height };
}

/** From one layer to the next. */
export function bandOf(grid: Grid): number {
  return grid.lines * grid.cellHeight + grid.bandGap;
}

export function corner(grid: Grid, layer: number, expert: number): { x: number; y: number } {
  const line = Math.floor(expert / grid.columns);
  return {
    x: grid.left + (expert % grid.columns) * grid.cellWidth,
    y: layer * bandOf(grid) + line * grid.cellHeight,
  };
}

export function placeAt(grid: Grid, x: number, y: number): Place | null {
  const band = bandOf(grid);
  const layer = Math.floor(y / band);
  const line = Math.floor((y - layer * band) / grid.cellHeight);
  const column = Math.floor((x - grid.left) / grid.cellWidth);
  const expert = line * grid.columns + column;
  const isInside = layer >= 0 && layer < grid.layers && line >= 0 && line < grid.lines && column >= 0 && column < grid.columns;
  return isInside && expert < grid.experts ? { layer, expert } : null;
}

/** The neighbour that an arrow key means; the place itself at an edge. */
export function neighbour(grid: Grid, place: Place, key: string): Place | null {
  const { layer, expert } = place;
  switch (key) {
    case "ArrowLeft":
      return { layer, expert: Math.max(0, expert - 1) };
    case "ArrowRight":
      return { layer, expert: Math.min(grid.experts - 1, expert + 1) };
    case "ArrowUp":
      return { layer: Math.max(0, layer - 1), expert };
    case "ArrowDown":
      return { layer: Math.min(grid.layers - 1, layer + 1), expert };
    case "Home":
      return { layer, expert: 0 };
    case "End":
      return { layer, expert: grid.experts - 1 };
    default:
      return null;
  }
}
