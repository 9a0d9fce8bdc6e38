// Beside the chat: where the experts are, how fast tokens come, what goes over the link, and the plan behind it.
// SPDX-License-Identifier: Apache-2.0
import { computed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { connection, samples, state, type State } from "../api/live";
import { IconButton } from "../ui/icon_button";
import { Close } from "../ui/icons";
import { isMapOpen, isWide, toggleMap } from "../ui/layout";
import { Chart } from "./chart";
import { ExpertMap } from "./expert_map";
import { countWhere, snapshotOf } from "./snapshot";
import { bytes, percent, rate } from "./units";

const speedNow = computed(() => rate(samples.value.at(-1)?.tokensPerSecond ?? 0));
const linkNow = computed(() => `${bytes(samples.value.at(-1)?.linkBytesPerSecond ?? 0)}/s`);
const hitsNow = computed(() => {
  const last = samples.value.findLast((s) => s.hitRate !== null)?.hitRate ?? state.value?.experts.hit_rate;
  return last ? percent(last) : "–";
});

const WITHOUT_STATE = {
  connecting: "Connecting…",
  live: "Connecting…",
  lost: "The server does not answer. The map comes back with it.",
  refused: "The server shows the map to those who have its API key. Enter it in the settings.",
};

function Legend({ counts }: { counts: [number, number, number] }) {
  const onGpu = counts[1] + counts[2] > 0;
  return (
    <ul class="legend" aria-label="Colours">
      {onGpu && (
        <li>
          <i class="swatch is-vram" /> VRAM <b>{counts[1].toLocaleString("en")}</b>
        </li>
      )}
      {onGpu && (
        <li>
          <i class="swatch is-arriving" /> arriving <b>{counts[2].toLocaleString("en")}</b>
        </li>
      )}
      <li>
        <i class="swatch is-ram" /> RAM <b>{counts[0].toLocaleString("en")}</b>
      </li>
      <li class="heat-scale">
        cold <i class={`ramp ${onGpu ? "is-vram" : "is-ram"}`} /> hot
      </li>
    </ul>
  );
}

function Plan({ state: s }: { state: State }) {
  const rows: [string, string][] = [
    ["Device", s.plan.device],
    ["Mode", s.plan.mode],
  ];
  const what = s.model.is_dense ? "networks" : "experts";
  if (s.plan.vram_bytes > 0) rows.push([`VRAM for ${what}`, `${bytes(s.plan.vram_bytes)}, ${s.plan.n_slots.toLocaleString("en")} ${what}`]);
  if (s.plan.predicted_decode > 0) rows.push(["Predicted", `${rate(s.plan.predicted_decode)} tokens/s`]);
  const used = s.model.is_dense ? "dense" : `${s.model.n_experts_used} of ${s.model.n_experts} experts per token`;
  rows.push(["Model", `${s.model.architecture}, ${used}`]);
  rows.push(["Context", `${s.model.n_ctx.toLocaleString("en")} tokens`]);
  return (
    <section class="plan" aria-label="Plan">
      <h3>Plan</h3>
      <dl>
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {s.plan.reason && <p class="soft">{s.plan.reason}</p>}
    </section>
  );
}

function Requests({ speed }: { speed: State["speed"] }) {
  const words = speed.running === 0 ? "idle" : `${speed.running} running`;
  return (
    <span class="requests">
      {words}
      {speed.queued > 0 && `, ${speed.queued} waiting`}
    </span>
  );
}

function Live({ state: s }: { state: State }) {
  const snapshot = snapshotOf(s.map);
  const counts = snapshot ? countWhere(snapshot) : ([0, 0, 0] as [number, number, number]);
  const onGpu = counts[1] + counts[2] > 0;
  return (
    <>
      {snapshot ? (
        <>
          <Legend counts={counts} />
          <ExpertMap />
        </>
      ) : (
        <p class="soft">This model has no experts: every token passes through all of it.</p>
      )}
      <section class="charts" aria-label="Over time">
        <Chart label="Speed" unit="tokens/s" value={(x) => x.tokensPerSecond} format={rate} now={speedNow} />
        {onGpu && <Chart label="Hits" unit="found in VRAM" value={(x) => x.hitRate} format={percent} now={hitsNow} top={1} />}
        {onGpu && <Chart label="Link" unit="to VRAM" value={(x) => x.linkBytesPerSecond} format={(v) => `${bytes(v)}/s`} now={linkNow} />}
      </section>
      <Plan state={s} />
    </>
  );
}

export function MapPanel() {
  const s = state.value;
  const panel = useRef<HTMLElement>(null);
  // As a drawer it takes the focus, and gives it back; beside the chat it leaves it alone.
  useEffect(() => {
    if (isWide.peek()) return;
    panel.current?.querySelector("button")?.focus();
    return () => document.getElementById("map-toggle")?.focus();
  }, []);
  return (
    <aside class="map-panel" aria-label="Expert map" ref={panel}>
      <header>
        <h2>Experts</h2>
        {s && <Requests speed={s.speed} />}
        <IconButton label="Close the map" onClick={() => (isWide.peek() ? toggleMap() : (isMapOpen.value = false))}>
          <Close />
        </IconButton>
      </header>
      {s ? <Live state={s} /> : <p class="soft">{WITHOUT_STATE[connection.value]}</p>}
    </aside>
  );
}
