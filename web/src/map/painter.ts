// Draws the map on a canvas: hue says where an expert is, strength how hot it is. Between two snapshots the colours glide,
// so that the eye can follow; not where the person wants less motion.
// SPDX-License-Identifier: Apache-2.0
import { bandOf, corner, gridFor, type Grid, type Place } from "./grid";
import type { Snapshot } from "./snapshot";

type Colour = readonly [number, number, number];

interface Palette {
  cold: Colour; // any expert that is never asked for
  hot: readonly [Colour, Colour, Colour]; // by where
  label: string;
  cursor: string;
}

const GLIDE_MS = 350;
const FRAME_MS = 40; // the model may want the same CPU
const LEAST = [0.06, 0.3, 0.75] as const; // strength of a cold expert, by where
const LABEL_PX = 10;

function colourOf(css: string): Colour {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = css;
  context.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b];
}

/** From the style sheet's registered properties, which come resolved for light or dark. */
function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name);
  return {
    cold: colourOf(read("--map-cold")),
    hot: [colourOf(read("--map-ram")), colourOf(read("--map-vram")), colourOf(read("--map-arriving"))],
    label: read("--map-label"),
    cursor: read("--map-cursor"),
  };
}

export class Painter {
  grid: Grid = gridFor(1, 1, 300);
  cursor: Place | null = null;
  private snapshot: Snapshot | null = null;
  private shown = new Float32Array(0); // rgb of each cell, as on the screen
  private target = new Float32Array(0);
  private palette: Palette;
  private painted = new Int32Array(0); // what each cell was last filled with
  private frame = 0;
  private last = 0;
  private readonly calm = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.palette = paletteOf(canvas);
  }

  /** After the colours of the page have changed. */
  recolour(): void {
    this.palette = paletteOf(this.canvas);
    this.aim();
    this.shown.set(this.target);
    this.paint();
  }

  /** In a box of `width` CSS pixels. */
  resize(width: number): void {
    const { layers, experts } = this.snapshot ?? { layers: 1, experts: 1 };
    this.grid = gridFor(layers, experts, width);
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.grid.width * scale);
    this.canvas.height = Math.round(this.grid.height * scale);
    this.canvas.style.width = `${this.grid.width}px`;
    this.canvas.style.height = `${this.grid.height}px`;
    this.paint();
  }

  show(snapshot: Snapshot, width: number): void {
    const isOther = this.snapshot?.layers !== snapshot.layers || this.snapshot.experts !== snapshot.experts;
    this.snapshot = snapshot;
    if (isOther) {
      this.shown = new Float32Array(snapshot.where.length * 3);
      this.target = new Float32Array(snapshot.where.length * 3);
    }
    this.aim();
    if (isOther) {
      this.shown.set(this.target);
      this.resize(width);
    } else {
      this.last = performance.now();
      this.frame ||= requestAnimationFrame(this.glide);
    }
  }

  setCursor(place: Place | null): void {
    this.cursor = place;
    this.paint();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  /** A cell without its gap. Narrow ones have none to the side: a gap would take more than it shows. */
  private inner(): { width: number; height: number } {
    const { cellWidth, cellHeight, gap } = this.grid;
    return { width: cellWidth - (cellWidth >= 5 ? gap : 0), height: cellHeight - gap };
  }

  private aim(): void {
    if (!this.snapshot) return;
    const { where, heat } = this.snapshot;
    const { cold, hot } = this.palette;
    for (let i = 0; i < where.length; ++i) {
      const place = where[i] === 1 ? 1 : where[i] === 2 ? 2 : 0;
      const least = LEAST[place];
      const strength = least + (1 - least) * ((heat[i] ?? 0) / 255) ** 1.4;
      for (let c = 0; c < 3; ++c) this.target[3 * i + c] = cold[c as 0]! + (hot[place][c as 0]! - cold[c as 0]!) * strength;
    }
  }

  private readonly glide = (now: number): void => {
    if (now - this.last < FRAME_MS) {
      this.frame = requestAnimationFrame(this.glide);
      return;
    }
    const step = this.calm.matches ? 1 : Math.min(1, Math.max(0, now - this.last) / GLIDE_MS);
    this.last = now;
    let distance = 0;
    for (let i = 0; i < this.shown.length; ++i) {
      const missing = this.target[i]! - this.shown[i]!;
      this.shown[i]! += missing * Math.min(1, step * 3);
      distance = Math.max(distance, Math.abs(missing));
    }
    const context = this.canvas.getContext("2d");
    if (context && this.snapshot) this.paintCells(context, this.snapshot);
    if (context && this.cursor) this.paintCursor(context, this.cursor);
    this.frame = distance > 1 ? requestAnimationFrame(this.glide) : 0;
  };

  private paint(): void {
    const context = this.canvas.getContext("2d");
    if (!context || !this.snapshot) return;
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.grid.width, this.grid.height);
    this.painted = new Int32Array(this.snapshot.where.length).fill(-1);
    this.paintCells(context, this.snapshot);
    this.paintLabels(context);
    if (this.cursor) this.paintCursor(context, this.cursor);
  }

  /** Those whose colour is another than on the screen. */
  private paintCells(context: CanvasRenderingContext2D, { layers, experts }: Snapshot): void {
    const { width, height } = this.inner();
    const radius = width >= 8 ? 2.5 : 0;
    for (let layer = 0, i = 0; layer < layers; ++layer) {
      for (let expert = 0; expert < experts; ++expert, ++i) {
        const colour = (this.shown[3 * i]! << 16) | (this.shown[3 * i + 1]! << 8) | this.shown[3 * i + 2]!;
        if (colour === this.painted[i]) continue;
        this.painted[i] = colour;
        const { x, y } = corner(this.grid, layer, expert);
        context.fillStyle = `#${colour.toString(16).padStart(6, "0")}`;
        if (radius === 0) {
          context.fillRect(x, y, width, height);
        } else {
          context.clearRect(x, y, width, height); // or the round corners' half-covered pixels add up
          context.beginPath();
          context.roundRect(x, y, width, height, radius);
          context.fill();
        }
      }
    }
  }

  /** The numbers of some layers, as many as there is room for. */
  private paintLabels(context: CanvasRenderingContext2D): void {
    const band = bandOf(this.grid);
    const every = [1, 2, 4, 8, 16, 32].find((n) => n * band >= 1.6 * LABEL_PX) ?? 32;
    context.fillStyle = this.palette.label;
    context.font = `${LABEL_PX}px Inter, sans-serif`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let layer = 0; layer < this.grid.layers; layer += every) {
      const y = layer * band + (band - this.grid.bandGap - this.grid.gap) / 2;
      context.fillText(String(layer), this.grid.left - 6, Math.max(y, LABEL_PX / 2));
    }
  }

  private paintCursor(context: CanvasRenderingContext2D, { layer, expert }: Place): void {
    const { x, y } = corner(this.grid, layer, expert);
    const { width, height } = this.inner();
    context.strokeStyle = this.palette.cursor;
    context.lineWidth = 1.5;
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }
}
