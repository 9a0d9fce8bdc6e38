// Where a message is written. Enter sends it, Shift+Enter begins a line; while an answer streams the button stops it.
// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { path } from "../store/conversation";
import * as store from "../store/store";
import { Send, Stop } from "../ui/icons";
import { fitHeight, sendsOn } from "../ui/textarea";
import { editing } from "./message";
import { running, send, stop } from "./run";

const draft = signal("");

export function focusComposer(): void {
  document.getElementById("composer")?.focus();
}

function editLast(): boolean {
  const conversation = store.current.peek();
  const last = conversation && path(conversation).findLast((m) => m.role === "user");
  if (!last || running.peek().has(conversation.id)) return false;
  editing.value = last.id;
  return true;
}

export function Composer() {
  const area = useRef<HTMLTextAreaElement>(null);
  const id = store.openId.value;
  const isRunning = id !== null && running.value.has(id);

  useEffect(() => fitHeight(area.current), [draft.value]);
  useEffect(focusComposer, [id]);

  const submit = () => {
    const text = draft.peek().trim();
    if (!text || isRunning || !store.isLoaded.peek()) return;
    draft.value = "";
    send(text);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div class="composer-box">
        <textarea
          id="composer"
          ref={area}
          rows={1}
          value={draft}
          placeholder="Ask something"
          aria-label="Message"
          aria-describedby="composer-hint"
          onInput={(event) => (draft.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (sendsOn(event)) {
              event.preventDefault();
              submit();
            } else if (event.key === "ArrowUp" && draft.peek() === "" && editLast()) {
              event.preventDefault();
            }
          }}
        />
        {isRunning ? (
          <button type="button" class="send is-stop" aria-label="Stop the answer" title="Stop (Esc)" onClick={() => stop(id)}>
            <Stop />
          </button>
        ) : (
          <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled={draft.value.trim() === ""}>
            <Send />
          </button>
        )}
      </div>
      <p class="hint" id="composer-hint">
        <kbd>Enter</kbd> sends · <kbd>Shift</kbd> <kbd>Enter</kbd> new line · <kbd>↑</kbd> edits the last message · <kbd>Esc</kbd> stops
      </p>
    </form>
  );
}
