// What is open beside the chat, and how wide the window is.
// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";

const wide = matchMedia("(min-width: 1200px)");
const medium = matchMedia("(min-width: 800px)");

export const isWide = signal(wide.matches);
export const isMedium = signal(medium.matches);
wide.addEventListener("change", () => (isWide.value = wide.matches));
medium.addEventListener("change", () => (isMedium.value = medium.matches));

const MAP_KEY = "sluice.map";

function kept(): string | null {
  try {
    return localStorage.getItem(MAP_KEY);
  } catch {
    return null;
  }
}

/** The map stands beside the chat where there is room, until it is closed. On a narrower window it is asked for. */
export const isMapOpen = signal(wide.matches && kept() !== "closed");
export const isSidebarOpen = signal(false); // as a drawer, on a phone
export const areSettingsOpen = signal(false);

export function toggleMap(): void {
  isMapOpen.value = !isMapOpen.value;
  isSidebarOpen.value = false;
  if (!wide.matches) return;
  try {
    localStorage.setItem(MAP_KEY, isMapOpen.value ? "open" : "closed");
  } catch {
    // it opens again next time
  }
}
