// What the person has set, kept in localStorage. null: the server's own default.
// SPDX-License-Identifier: Apache-2.0
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

export interface Settings {
  temperature: number | null;
  topP: number | null;
  topK: number | null;
  minP: number | null;
  seed: number | null;
  maxTokens: number | null;
  system: string;
  apiKey: string;
  theme: Theme;
}

export const defaults: Settings = {
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  seed: null,
  maxTokens: null,
  system: "",
  apiKey: "",
  theme: "system",
};

const KEY = "sluice.settings";

function load(): Settings {
  try {
    return { ...defaults, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>) };
  } catch {
    return defaults; // blocked, or written by someone else
  }
}

export const settings = signal<Settings>(load());

export function keepSettings(): void {
  effect(() => {
    const { theme } = settings.value;
    document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
    document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem(KEY, JSON.stringify(settings.value));
    } catch {
      // they hold until the page is closed
    }
  });
}
