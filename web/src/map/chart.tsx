// A small plot of the last two minutes: one line, its value now as the heading. The mouse shows the value of any moment.
// SPDX-License-Identifier: Apache-2.0
import { type ReadonlySignal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { samples, type Sample } from "../api/live";
import { settings } from "../store/settings";

interface Props {
  label: string;
  unit: string;
  value: (sample: Sample) => number | null;
  format: (value: number) => string;
  now: ReadonlySignal<string>;
  /** The top of the scale, where it is known. */
  top?: number;
}

const HEIGHT = 56;
const SPAN_SECONDS = 120;

function make(box: HTMLElement, props: Props, onPick: (text: string | null) => void): uPlot {
  const style = getComputedStyle(box);
  const line = style.getPropertyValue("--chart-line");
  const grid = style.getPropertyValue("--chart-grid");
  const pick = (plot: uPlot) => {
    const i = plot.cursor.idx;
    const value = i === null || i === undefined ? null : plot.data[1]?.[i];
    onPick(value === null || value === undefined ? null : props.format(value));
  };
  return new uPlot(
    {
      width: box.clientWidth,
      height: HEIGHT,
      padding: [4, 0, 2, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 6, fill: line }, drag: { x: false, y: false, setScale: false } },
      scales: {
        x: { time: true, range: (_, __, max) => [max - SPAN_SECONDS, max] },
        y: { range: (_, __, max) => [0, props.top ?? Math.max(1e-9, (max || 1) * 1.15)] },
      },
      axes: [{ show: false }, { show: true, size: 0, values: () => [], ticks: { show: false }, grid: { stroke: grid, width: 1 }, splits: (_, __, min, max) => [min, (min + max) / 2] }],
      series: [{}, { stroke: line, fill: style.getPropertyValue("--chart-fill"), width: 1.5, points: { show: false }, spanGaps: true }],
      hooks: { setCursor: [pick] },
    },
    dataOf(props),
    box,
  );
}

function dataOf({ value }: Props): uPlot.AlignedData {
  const all = samples.peek();
  return [all.map((s) => s.at), all.map(value)];
}

export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const picked = useSignal<string | null>(null);

  useEffect(() => {
    const element = box.current!;
    const remake = () => {
      plot.current?.destroy();
      plot.current = make(element, props, (text) => (picked.value = text));
    };
    remake();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", remake);
    const unsubscribe = settings.subscribe(() => requestAnimationFrame(() => element.isConnected && remake()));
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      dark.removeEventListener("change", remake);
      unsubscribe();
      observer.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useSignalEffect(() => {
    void samples.value;
    plot.current?.setData(dataOf(props));
  });
  return (
    <div class="chart">
      <p>
        <span>{props.label}</span>
        <b>{picked.value ?? props.now.value}</b>
        <small>{props.unit}</small>
      </p>
      <div ref={box} class="plot" role="img" aria-label={`${props.label} over the last two minutes`} />
    </div>
  );
}
