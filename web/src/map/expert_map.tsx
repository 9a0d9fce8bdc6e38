// The expert map: layers by experts, live. The mouse or the arrow keys pick an expert, and a line below says what it is.
// SPDX-License-Identifier: Apache-2.0
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { state } from "../api/live";
import { settings } from "../store/settings";
import { neighbour, placeAt, type Place } from "./grid";
import { Painter } from "./painter";
import { snapshotOf, WHERE, type Snapshot } from "./snapshot";

function heatOf(snapshot: Snapshot, i: number): string {
  const heat = snapshot.heat[i] ?? 0;
  return heat === 0 ? "not used lately" : `heat ${Math.round((heat / 255) * 100)} of 100`;
}

function Readout({ place, snapshot }: { place: Place | null; snapshot: Snapshot }) {
  if (!place) {
    return (
      <p class="readout soft">
        {snapshot.layers} layers × {snapshot.experts} experts
      </p>
    );
  }
  const i = place.layer * snapshot.experts + place.expert;
  return (
    <p class="readout" aria-live="polite">
      Layer <b>{place.layer}</b> · expert <b>{place.expert}</b> · {WHERE[snapshot.where[i] ?? 0] ?? WHERE[0]} · {heatOf(snapshot, i)}
    </p>
  );
}

export function ExpertMap() {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const place = useSignal<Place | null>(null);
  const snapshot = useSignal<Snapshot | null>(null);
  const version = useSignal(0);

  useEffect(() => {
    const made = new Painter(canvas.current!);
    painter.current = made;
    const resize = () => made.resize(box.current?.clientWidth ?? 300);
    const observer = new ResizeObserver(resize);
    observer.observe(box.current!);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => made.recolour();
    dark.addEventListener("change", recolour);
    return () => {
      made.stop();
      observer.disconnect();
      dark.removeEventListener("change", recolour);
    };
  }, []);
  useSignalEffect(() => {
    const now = state.value && snapshotOf(state.value.map);
    if (!now) return;
    snapshot.value = now;
    version.value = version.peek() + 1;
    painter.current?.show(now, box.current?.clientWidth ?? 300);
  });
  useSignalEffect(() => {
    void settings.value.theme;
    painter.current?.recolour();
  });

  const pick = (next: Place | null) => {
    place.value = next;
    painter.current?.setCursor(next);
  };
  const onPointer = (event: PointerEvent) => {
    const grid = painter.current?.grid;
    if (grid) pick(placeAt(grid, event.offsetX, event.offsetY));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const grid = painter.current?.grid;
    const next = grid && neighbour(grid, place.peek() ?? { layer: 0, expert: 0 }, event.key);
    if (!next) return;
    event.preventDefault();
    pick(place.peek() ? next : { layer: 0, expert: 0 });
  };
  return (
    <div class="expert-map">
      <div ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label="Map of the experts: a row for each layer, a cell for each expert. Arrow keys pick one."
          data-version={version}
          onPointerMove={onPointer}
          onPointerDown={onPointer}
          onPointerLeave={() => pick(null)}
          onKeyDown={onKeyDown}
          onBlur={() => pick(null)}
        />
      </div>
      {snapshot.value && <Readout place={place.value} snapshot={snapshot.value} />}
    </div>
  );
}
