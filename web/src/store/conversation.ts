// A conversation is a tree: editing a message or asking for another answer adds a sibling, and nothing is lost. The
// thread on the screen is the path from the root along the chosen children. Pure: each change returns a new value.
// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../api/problem";

export const ROOT = "root";

export interface Message {
  id: string;
  parent: string;
  role: "user" | "assistant";
  text: string;
  reasoning: string;
  at: number; // milliseconds since 1970
  state: "done" | "streaming" | "stopped" | "failed";
  finish?: string;
  problem?: Problem;
  thinkSeconds?: number;
  nTokens?: number;
  tokensPerSecond?: number;
  firstSeconds?: number; // until the first token
}

export interface Conversation {
  id: string;
  title: string;
  isNamed: boolean; // by the person, not after the first message
  updated: number;
  messages: Record<string, Message>;
  children: Record<string, string[]>;
  chosen: Record<string, string>; // parent -> the child on the path
}

export function newId(): string {
  // Not randomUUID: over plain HTTP, other than on localhost, browsers do not have it.
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}

export function newConversation(): Conversation {
  return { id: newId(), title: "New conversation", isNamed: false, updated: Date.now(), messages: {}, children: {}, chosen: {} };
}

export function newMessage(parent: string, role: Message["role"], text: string): Message {
  return { id: newId(), parent, role, text, reasoning: "", at: Date.now(), state: role === "user" ? "done" : "streaming" };
}

/** From the first message to the last, along the chosen children. */
export function path(conversation: Conversation): Message[] {
  const found: Message[] = [];
  for (let at = ROOT; ; ) {
    const message = conversation.messages[conversation.chosen[at] ?? ""];
    if (!message) return found;
    found.push(message);
    at = message.id;
  }
}

/** The messages that led to this one, without it. */
export function before(conversation: Conversation, message: Message): Message[] {
  const found: Message[] = [];
  for (let up = conversation.messages[message.parent]; up; up = conversation.messages[up.parent]) found.unshift(up);
  return found;
}

function titleOf(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line || "New conversation";
}

/** Adds the message below its parent, and puts it on the path. */
export function add(conversation: Conversation, message: Message): Conversation {
  const isFirst = message.parent === ROOT && !conversation.isNamed;
  return {
    ...conversation,
    title: isFirst ? titleOf(message.text) : conversation.title,
    updated: message.at,
    messages: { ...conversation.messages, [message.id]: message },
    children: { ...conversation.children, [message.parent]: [...(conversation.children[message.parent] ?? []), message.id] },
    chosen: { ...conversation.chosen, [message.parent]: message.id },
  };
}

export function change(conversation: Conversation, id: string, changes: Partial<Message>): Conversation {
  const message = conversation.messages[id];
  if (!message) return conversation;
  return { ...conversation, messages: { ...conversation.messages, [id]: { ...message, ...changes } } };
}

export function siblings(conversation: Conversation, message: Message): string[] {
  return conversation.children[message.parent] ?? [];
}

export function choose(conversation: Conversation, id: string): Conversation {
  const message = conversation.messages[id];
  if (!message) return conversation;
  return { ...conversation, chosen: { ...conversation.chosen, [message.parent]: id } };
}

/** The path as Markdown. */
export function toMarkdown(conversation: Conversation): string {
  const parts = path(conversation).map((m) => {
    const thought = m.reasoning ? `<details><summary>Reasoning</summary>\n\n${m.reasoning.trim()}\n\n</details>\n\n` : "";
    return `## ${m.role === "user" ? "You" : "Answer"}\n\n${thought}${m.text.trim()}\n`;
  });
  return `# ${conversation.title}\n\n${parts.join("\n")}`;
}
