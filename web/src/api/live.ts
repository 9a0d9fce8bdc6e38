// What the server does right now (/api/sluice/live, or /api/sluice/state where that is missing), and the last two minutes of it.
// Asks nothing while the page is hidden.
// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { settings } from "../store/settings";
import { headersOf } from "./chat";
import { events } from "./sse";

export interface State {
  model: { name: string; architecture: string; n_layers: number; n_experts: number; n_experts_used: number; is_dense: boolean; n_ctx: number };
  plan: { device: string; mode: string; reason: string; vram_bytes: number; n_slots: number; predicted_decode: number };
  speed: { decode_tps: number; prefill_tps: number; running: number; queued: number };
  experts: { hits: number; staged: number; link: number; cpu: number; link_bytes: number; hit_rate: number };
  map: { layers: number; experts: number; where: string; heat: string };
}

/** One line of the plots. */
export interface Sample {
  at: number; // seconds
  tokensPerSecond: number;
  hitRate: number | null; // of the time since the sample before; null where no expert was asked for
  linkBytesPerSecond: number;
}

export type Connection = "connecting" | "live" | "lost" | "refused";

const KEPT_SECONDS = 120;
const POLL_MS = 1000;

export const state = signal<State | null>(null);
export const samples = signal<readonly Sample[]>([]);
export const connection = signal<Connection>("connecting");

let before: { at: number; experts: State["experts"] } | null = null;

function sampleOf(now: State, at: number): Sample {
  const then = before;
  const found = (e: State["experts"]) => e.hits + e.staged; // there already, or there in time
  const asked = (e: State["experts"]) => e.hits + e.staged + e.link + e.cpu;
  // Counters that went back are those of a server that was started again.
  const known = then !== null && asked(now.experts) >= asked(then.experts) && at > then.at;
  const seconds = known ? at - then.at : 1;
  const n = known ? asked(now.experts) - asked(then.experts) : 0;
  return {
    at,
    tokensPerSecond: now.speed.decode_tps,
    hitRate: known && n > 0 ? (found(now.experts) - found(then.experts)) / n : null,
    linkBytesPerSecond: known ? Math.max(0, now.experts.link_bytes - then.experts.link_bytes) / seconds : 0,
  };
}

function take(text: string): void {
  const now = JSON.parse(text) as State;
  const at = performance.timeOrigin / 1000 + performance.now() / 1000;
  const sample = sampleOf(now, at);
  before = { at, experts: now.experts };
  samples.value = [...samples.value.filter((s) => s.at > at - KEPT_SECONDS), sample];
  state.value = now;
  connection.value = "live";
}

async function follow(stop: AbortSignal): Promise<void> {
  const options = { headers: headersOf(settings.peek()), signal: stop };
  const response = await fetch("api/sluice/live", options);
  if (response.status === 401 || response.status === 403) {
    connection.value = "refused";
    throw new Error("no key");
  }
  if (response.ok && response.body && response.headers.get("content-type")?.startsWith("text/event-stream")) {
    for await (const data of events(response.body)) take(data);
    return;
  }
  for (;;) {
    const one = await fetch("api/sluice/state", options);
    if (!one.ok) throw new Error(String(one.status));
    take(await one.text());
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function followAlways(stop: AbortSignal): Promise<void> {
  let patience = 500;
  while (!stop.aborted) {
    const began = Date.now();
    try {
      await follow(stop);
    } catch {
      // told below
    }
    if (stop.aborted) return;
    if (connection.peek() !== "refused") connection.value = "lost";
    patience = Date.now() - began > 5000 ? 500 : Math.min(patience * 2, 8000);
    await new Promise((resolve) => setTimeout(resolve, patience));
  }
}

let running: AbortController | null = null;

/** Begins anew, with the key that is set now. */
export function followServer(): void {
  running?.abort();
  running = null;
  if (document.hidden) return;
  running = new AbortController();
  void followAlways(running.signal);
}

export function startFollowing(): void {
  document.addEventListener("visibilitychange", followServer);
  followServer();
}
