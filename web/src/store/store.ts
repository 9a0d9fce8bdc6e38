// All conversations, which one is open, and their way to the disk.
// SPDX-License-Identifier: Apache-2.0
import { computed, signal } from "@preact/signals";
import type { Conversation } from "./conversation";
import * as database from "./database";

const SAVE_MS = 300;
const OPEN_KEY = "sluice.open";

export const conversations = signal<Readonly<Record<string, Conversation>>>({});
export const openId = signal<string | null>(null);
export const isLoaded = signal(false);
/** Why nothing is kept, where that is so. */
export const keepProblem = signal<string | null>(null);

export const current = computed(() => conversations.value[openId.value ?? ""] ?? null);
/** Newest first. */
export const listed = computed(() => Object.values(conversations.value).sort((a, b) => b.updated - a.updated));

const waiting = new Map<string, ReturnType<typeof setTimeout>>();

function write(id: string): void {
  clearTimeout(waiting.get(id));
  waiting.delete(id);
  const conversation = conversations.peek()[id];
  if (conversation) database.put(conversation).then(() => tabs.postMessage(id), tellKeepProblem);
}

// Other tabs of the page show what this one keeps.
const tabs = new BroadcastChannel("sluice");

async function onOtherTab(id: string): Promise<void> {
  const kept = await database.load(id);
  if (waiting.has(id)) return; // a stream of our own is in it
  const { [id]: _, ...others } = conversations.peek();
  conversations.value = kept ? { ...others, [id]: kept } : others;
}

function tellKeepProblem(error: unknown): void {
  keepProblem.value = error instanceof Error ? error.message : String(error);
}

export function save(conversation: Conversation): void {
  conversations.value = { ...conversations.peek(), [conversation.id]: conversation };
  write(conversation.id);
}

/** Changes a conversation, if it is still there. */
export function update(id: string, make: (old: Conversation) => Conversation): void {
  const old = conversations.peek()[id];
  if (old) save(make(old));
}

/** The same for what a stream changes many times a second: the first change sets the time, the others ride along. */
export function updateOften(id: string, make: (old: Conversation) => Conversation): void {
  const old = conversations.peek()[id];
  if (!old) return;
  conversations.value = { ...conversations.peek(), [id]: make(old) };
  if (!waiting.has(id)) waiting.set(id, setTimeout(() => write(id), SAVE_MS));
}

export function remove(id: string): void {
  const { [id]: _, ...others } = conversations.peek();
  clearTimeout(waiting.get(id));
  waiting.delete(id);
  conversations.value = others;
  if (openId.peek() === id) open(null);
  database.remove(id).then(() => tabs.postMessage(id), tellKeepProblem);
}

export function open(id: string | null): void {
  openId.value = id;
  try {
    if (id) localStorage.setItem(OPEN_KEY, id);
    else localStorage.removeItem(OPEN_KEY);
  } catch {
    // then the page opens with a new conversation
  }
}

/** A stream that the page did not see the end of: it was closed in between. */
function settled(conversation: Conversation): Conversation {
  const messages = Object.fromEntries(
    Object.entries(conversation.messages).map(([id, m]) => [id, m.state === "streaming" ? { ...m, state: "stopped" as const } : m]),
  );
  return { ...conversation, messages };
}

export async function load(): Promise<void> {
  try {
    const all = await database.loadAll();
    const kept = Object.fromEntries(all.map((c) => [c.id, settled(c)]));
    conversations.value = { ...kept, ...conversations.peek() };
    const last = localStorage.getItem(OPEN_KEY);
    if (last && kept[last] && openId.peek() === null) openId.value = last;
  } catch (error) {
    tellKeepProblem(error);
  }
  isLoaded.value = true;
  tabs.onmessage = ({ data }: MessageEvent<string>) => void onOtherTab(data).catch(tellKeepProblem);
  addEventListener("pagehide", () => [...waiting.keys()].forEach(write));
}
