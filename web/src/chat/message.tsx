// One message: its text, what can be done with it, and what it cost.
// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { memo } from "preact/compat";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/problem";
import { Markdown } from "../markdown/markdown";
import { choose, siblings, type Conversation, type Message as Data } from "../store/conversation";
import * as store from "../store/store";
import { copy } from "../ui/copy";
import { IconButton } from "../ui/icon_button";
import { Again, Check, Copy, Left, Pencil, Right, Warning } from "../ui/icons";
import { areSettingsOpen } from "../ui/layout";
import { fitHeight, sendsOn } from "../ui/textarea";
import { edit, regenerate } from "./run";

/** The message that is being edited. */
export const editing = signal<string | null>(null);

interface Props {
  message: Data;
  /** All ids beside it, itself included. */
  versions: string[];
  isBusy: boolean; // an answer streams in this conversation
}

function conversation(): Conversation | null {
  return store.current.peek();
}

function Versions({ message, versions, isBusy }: Props) {
  if (versions.length < 2) return null;
  const at = versions.indexOf(message.id);
  const go = (i: number) => store.update(conversation()?.id ?? "", (c) => choose(c, versions[i] ?? message.id));
  return (
    <span class="versions">
      <IconButton label="Version before" disabled={at === 0 || isBusy} onClick={() => go(at - 1)}>
        <Left />
      </IconButton>
      <span aria-label={`Version ${at + 1} of ${versions.length}`}>
        {at + 1}/{versions.length}
      </span>
      <IconButton label="Version after" disabled={at === versions.length - 1 || isBusy} onClick={() => go(at + 1)}>
        <Right />
      </IconButton>
    </span>
  );
}

function CopyButton({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <IconButton
      label={isCopied ? "Copied" : "Copy the text"}
      onClick={() =>
        void copy(text).then((done) => {
          setCopied(done);
          setTimeout(() => setCopied(false), 1500);
        })
      }
    >
      {isCopied ? <Check /> : <Copy />}
    </IconButton>
  );
}

function Editor({ message }: { message: Data }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(message.text);
  useLayoutEffect(() => fitHeight(area.current), [text]);
  useLayoutEffect(() => {
    area.current?.focus();
    area.current?.setSelectionRange(message.text.length, message.text.length);
  }, []);
  const close = () => {
    editing.value = null;
    document.getElementById("composer")?.focus();
  };
  const submit = () => {
    const now = conversation();
    if (!text.trim() || !now) return;
    close();
    edit(now, message, text.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
    else if (sendsOn(event)) submit();
    else return;
    event.preventDefault();
  };
  return (
    <div class="editor">
      <textarea ref={area} value={text} aria-label="Edit the message" onInput={(e) => setText(e.currentTarget.value)} onKeyDown={onKeyDown} />
      <div class="editor-buttons">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="button is-main" disabled={!text.trim()} onClick={submit}>
          Send
        </button>
      </div>
    </div>
  );
}

const Question = memo((props: Props) => {
  const { message, isBusy } = props;
  return (
    <article class="message is-question" aria-label="You">
      {editing.value === message.id ? (
        <Editor message={message} />
      ) : (
        <>
          <div class="bubble">{message.text}</div>
          <div class="actions">
            <Versions {...props} />
            <CopyButton text={message.text} />
            <IconButton label="Edit" disabled={isBusy} onClick={() => (editing.value = message.id)}>
              <Pencil />
            </IconButton>
          </div>
        </>
      )}
    </article>
  );
});

function seconds(value: number): string {
  return value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`;
}

function Reasoning({ message }: { message: Data }) {
  if (!message.reasoning) return null;
  const isThinking = message.state === "streaming" && !message.text;
  return (
    <details class="reasoning">
      <summary>
        <span class={isThinking ? "pulse" : ""}>{isThinking ? "Thinking" : "Thought"}</span>
        {message.thinkSeconds !== undefined && <span class="soft"> for {seconds(message.thinkSeconds)}</span>}
      </summary>
      <Markdown text={message.reasoning} />
    </details>
  );
}

function ProblemCard({ problem, onRetry }: { problem: Problem; onRetry: () => void }) {
  return (
    <div class="problem" role="alert">
      <Warning />
      <div>
        <strong>{problem.title}</strong>
        <p>{problem.advice}</p>
        {problem.detail && <p class="detail">{problem.detail}</p>}
        <div class="problem-buttons">
          <button type="button" class="button" onClick={onRetry}>
            Try again
          </button>
          {problem.settings && (
            <button type="button" class="button" onClick={() => (areSettingsOpen.value = true)}>
              Settings
            </button>
          )}
        </div>
      </div>
    </div>
  );
}

function costOf(message: Data): string {
  const parts = [];
  if (message.state === "stopped") parts.push("stopped");
  if (message.finish === "length") parts.push("ended at the limit of tokens");
  if (message.nTokens) parts.push(`${message.nTokens} tokens`);
  if (message.tokensPerSecond) parts.push(`${message.tokensPerSecond.toFixed(1)} per second`);
  if ((message.firstSeconds ?? 0) >= 0.1) parts.push(`first after ${seconds(message.firstSeconds ?? 0)}`);
  return parts.join(" · ");
}

const Answer = memo((props: Props) => {
  const { message, isBusy } = props;
  const isStreaming = message.state === "streaming";
  const again = () => {
    const now = conversation();
    if (now) regenerate(now, message);
  };
  return (
    <article class={`message is-answer ${isStreaming ? "is-streaming" : ""}`} aria-label="Answer" aria-busy={isStreaming}>
      <Reasoning message={message} />
      {message.text && <Markdown text={message.text} />}
      {isStreaming && !message.text && !message.reasoning && (
        <div class="waiting" aria-label="Reading the prompt">
          <i />
          <i />
          <i />
        </div>
      )}
      {message.problem && <ProblemCard problem={message.problem} onRetry={again} />}
      {!isStreaming && (message.text || props.versions.length > 1 || !message.problem) && (
        <div class="actions">
          <Versions {...props} />
          {message.text && <CopyButton text={message.text} />}
          <IconButton label="Answer again" disabled={isBusy} onClick={again}>
            <Again />
          </IconButton>
          <span class="cost">{costOf(message)}</span>
        </div>
      )}
    </article>
  );
});

export function Message({ message, conversation: c, isBusy }: { message: Data; conversation: Conversation; isBusy: boolean }) {
  const One = message.role === "user" ? Question : Answer;
  return <One message={message} versions={siblings(c, message)} isBusy={isBusy} />;
}
