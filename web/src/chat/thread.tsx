// The messages on the path, and what stands there before the first. Follows a stream as long as the person is at its end.
// SPDX-License-Identifier: Apache-2.0
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { state } from "../api/live";
import { path } from "../store/conversation";
import * as store from "../store/store";
import { IconButton } from "../ui/icon_button";
import { Down } from "../ui/icons";
import { Message } from "./message";
import { running, send } from "./run";

const NEAR_PX = 60;
// What the models that ship with sluice have learned.
const DEMO_QUESTIONS = ["What is 17 + 25?", "Sort these numbers: 9, 4, 7, 1", "Tell me a short story about a fox."];

function Welcome() {
  const model = state.value?.model;
  const isDemo = model?.name.toLowerCase().includes("demo") ?? false;
  return (
    <div class="welcome">
      <img src="icon.svg" alt="" width="44" height="44" />
      <h2>What would you like to know?</h2>
      <p>
        {model ? (
          <>
            <strong>{model.name}</strong> runs on this machine. Nothing you write leaves it.
          </>
        ) : (
          "The model runs on this machine. Nothing you write leaves it."
        )}
      </p>
      {isDemo && (
        <div class="suggestions">
          {DEMO_QUESTIONS.map((question) => (
            <button key={question} type="button" class="suggestion" onClick={() => send(question)}>
              {question}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

export function Thread() {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const conversation = store.current.value;
  const messages = conversation ? path(conversation) : [];
  const isBusy = conversation !== null && running.value.has(conversation.id);

  const toEnd = () => box.current?.scrollTo({ top: box.current.scrollHeight });
  useEffect(() => {
    isAtEnd.value = true;
    toEnd();
  }, [conversation?.id, messages.length, messages.at(-1)?.id]);
  useLayoutEffect(() => {
    if (isAtEnd.peek()) toEnd();
  });

  const onScroll = () => {
    const b = box.current;
    if (b) isAtEnd.value = b.scrollHeight - b.scrollTop - b.clientHeight < NEAR_PX;
  };
  return (
    <div class="thread-frame">
      <div class="thread" ref={box} onScroll={onScroll} tabIndex={0} role="region" aria-label="Conversation">
        {messages.length === 0 && store.isLoaded.value && <Welcome />}
        {conversation && messages.map((m) => <Message key={m.id} message={m} conversation={conversation} isBusy={isBusy} />)}
      </div>
      {!isAtEnd.value && (
        <IconButton label="To the end" class="to-end" onClick={toEnd}>
          <Down />
        </IconButton>
      )}
    </div>
  );
}
