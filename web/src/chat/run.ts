// Sending, stopping, asking again: what the buttons of the chat do. Each conversation may have one answer under way, also
// while another one is on the screen.
// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { answer, type Piece, type Turn } from "../api/chat";
import { type Problem, ProblemError } from "../api/problem";
import * as tree from "../store/conversation";
import type { Conversation, Message } from "../store/conversation";
import { settings } from "../store/settings";
import * as store from "../store/store";

/** Conversation -> what ends its answer. */
export const running = signal<ReadonlyMap<string, AbortController>>(new Map());
/** For those who hear the page: said once an answer has ended. */
export const announcement = signal("");

// A page that is left loses its connections; that is no fault of theirs.
let isLeaving = false;
addEventListener("pagehide", () => (isLeaving = true));
addEventListener("pageshow", () => (isLeaving = false));

function setRunning(id: string, controller: AbortController | null): void {
  const next = new Map(running.peek());
  if (controller) next.set(id, controller);
  else next.delete(id);
  running.value = next;
}

function turnsOf(history: Message[]): Turn[] {
  const system = settings.peek().system.trim();
  const turns: Turn[] = history.filter((m) => m.text !== "").map((m) => ({ role: m.role, content: m.text }));
  return system ? [{ role: "system", content: system }, ...turns] : turns;
}

/** Milliseconds between two looks of a stream. The eye needs no more, and the model may want the same CPU. */
const SHOW_MS = 40;

/** Collects pieces, and shows them now and then. */
class Collector {
  private text = "";
  private reasoning = "";
  private nPieces = 0;
  private readonly began = performance.now();
  private first = 0;
  private thought = 0;
  private exact: Partial<Message> = {};
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly conversation: string,
    private readonly message: string,
  ) {}

  take(piece: Piece): void {
    const now = performance.now();
    if (piece.text || piece.reasoning) {
      this.first ||= now;
      this.nPieces += 1;
    }
    if (piece.text && this.reasoning && !this.thought) this.thought = now;
    this.text += piece.text ?? "";
    this.reasoning += piece.reasoning ?? "";
    if (piece.finish) this.exact.finish = piece.finish;
    if (piece.answerTokens !== undefined) this.exact.nTokens = piece.answerTokens;
    if (piece.tokensPerSecond !== undefined) this.exact.tokensPerSecond = piece.tokensPerSecond;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      store.updateOften(this.conversation, (c) => tree.change(c, this.message, this.measured()));
    }, SHOW_MS);
  }

  finish(changes: Partial<Message>): void {
    clearTimeout(this.timer ?? undefined);
    store.update(this.conversation, (c) => tree.change(c, this.message, { ...this.measured(), ...changes }));
  }

  private measured(): Partial<Message> {
    const now = performance.now();
    const seconds = (now - this.first) / 1000;
    const measured: Partial<Message> = this.first
      ? {
          firstSeconds: (this.first - this.began) / 1000,
          nTokens: this.nPieces,
          tokensPerSecond: this.nPieces > 1 && seconds > 0 ? (this.nPieces - 1) / seconds : undefined,
        }
      : {};
    if (this.reasoning && this.first) measured.thinkSeconds = ((this.thought || now) - this.first) / 1000;
    return { text: this.text, reasoning: this.reasoning, ...measured, ...this.exact };
  }
}

function problemIn(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  return { title: "The page failed", advice: "Try again; reload the page if it stays.", detail: String(error) };
}

/** Answers below `parent`, which is on the path. */
async function run(conversation: Conversation, parent: Message): Promise<void> {
  const message = tree.newMessage(parent.id, "assistant", "");
  store.save(tree.add(conversation, message));
  const controller = new AbortController();
  setRunning(conversation.id, controller);
  const collector = new Collector(conversation.id, message.id);
  try {
    const turns = turnsOf([...tree.before(conversation, parent), parent]);
    for await (const piece of answer(turns, settings.peek(), controller.signal)) collector.take(piece);
    collector.finish({ state: "done" });
    announcement.value = "The answer is complete.";
  } catch (error) {
    const stopped = controller.signal.aborted || isLeaving;
    collector.finish(stopped ? { state: "stopped" } : { state: "failed", problem: problemIn(error) });
    announcement.value = stopped ? "Stopped." : problemIn(error).title;
  } finally {
    setRunning(conversation.id, null);
  }
}

/** Into the open conversation, or a new one. */
export function send(text: string): void {
  const conversation = store.current.peek() ?? tree.newConversation();
  if (running.peek().has(conversation.id)) return;
  const last = tree.path(conversation).at(-1);
  const question = tree.newMessage(last?.id ?? tree.ROOT, "user", text);
  store.open(conversation.id);
  void run(tree.add(conversation, question), question);
}

export function stop(id: string): void {
  running.peek().get(id)?.abort();
}

/** Another answer beside this one. */
export function regenerate(conversation: Conversation, message: Message): void {
  const parent = conversation.messages[message.parent];
  if (parent && !running.peek().has(conversation.id)) void run(conversation, parent);
}

/** The same message in other words, beside the old one, and an answer to it. */
export function edit(conversation: Conversation, message: Message, text: string): void {
  if (running.peek().has(conversation.id)) return;
  const question = tree.newMessage(message.parent, "user", text);
  void run(tree.add(conversation, question), question);
}
