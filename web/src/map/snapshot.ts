// The map as the server sends it, in bytes: where each expert is and how often it is asked for.
// SPDX-License-Identifier: Apache-2.0
import type { State } from "../api/live";

export const WHERE = ["in RAM", "in VRAM", "on its way to VRAM"] as const;

export interface Snapshot {
  layers: number;
  experts: number;
  where: Uint8Array; // [layers, experts]: an index of WHERE
  heat: Uint8Array; // [layers, experts]: 0 to 255, log scale
}

function bytesOf(base64: string, n: number): Uint8Array {
  const bytes = new Uint8Array(n); // what is missing is 0
  bytes.set(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).subarray(0, n));
  return bytes;
}

/** null for a model without experts. */
export function snapshotOf(map: State["map"]): Snapshot | null {
  const n = map.layers * map.experts;
  if (!(n > 0)) return null;
  return { layers: map.layers, experts: map.experts, where: bytesOf(map.where, n), heat: bytesOf(map.heat, n) };
}

export function countWhere(snapshot: Snapshot): [number, number, number] {
  const counts: [number, number, number] = [0, 0, 0];
  for (const w of snapshot.where) counts[w === 1 ? 1 : w === 2 ? 2 : 0] += 1;
  return counts;
}
