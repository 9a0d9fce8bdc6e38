// The conversations that this browser keeps: open, rename, export, delete.
// SPDX-License-Identifier: Apache-2.0
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { toMarkdown, type Conversation } from "../store/conversation";
import * as store from "../store/store";
import { download } from "../ui/download";
import { IconButton } from "../ui/icon_button";
import { Close, More, Plus } from "../ui/icons";
import { isMedium, isSidebarOpen } from "../ui/layout";
import { running, stop } from "./run";

function Rename({ conversation, onDone }: { conversation: Conversation; onDone: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const finish = (keep: boolean) => {
    const title = field.current?.value.trim();
    if (keep && title) store.update(conversation.id, (c) => ({ ...c, title, isNamed: true }));
    onDone();
  };
  return (
    <input
      ref={field}
      class="rename"
      defaultValue={conversation.title}
      aria-label="New name"
      onBlur={() => finish(true)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault();
        finish(event.key === "Enter");
      }}
    />
  );
}

interface MenuProps {
  conversation: Conversation;
  onRename: () => void;
  onClose: () => void;
}

function ItemMenu({ conversation, onRename, onClose }: MenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  const isSure = useSignal(false);
  useEffect(() => {
    menu.current?.querySelector("button")?.focus();
    const away = (event: Event) => {
      if (event.target instanceof Node && !menu.current?.contains(event.target)) onClose();
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, []);
  const move = (by: number) => {
    const items = [...(menu.current?.querySelectorAll("button") ?? [])];
    items[(items.indexOf(document.activeElement as HTMLButtonElement) + by + items.length) % items.length]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape" || event.key === "Tab") onClose();
    else return;
    event.preventDefault();
  };
  const act = (action: () => void) => () => {
    onClose();
    action();
  };
  const erase = () => {
    if (!isSure.value) {
      isSure.value = true;
      return;
    }
    onClose();
    stop(conversation.id);
    store.remove(conversation.id);
  };
  return (
    <div class="menu" role="menu" aria-label={conversation.title} ref={menu} onKeyDown={onKeyDown}>
      <button type="button" role="menuitem" onClick={act(onRename)}>
        Rename
      </button>
      <button type="button" role="menuitem" onClick={act(() => download(`${conversation.title}.md`, "text/markdown", toMarkdown(conversation)))}>
        Export as Markdown
      </button>
      <button type="button" role="menuitem" onClick={act(() => download(`${conversation.title}.json`, "application/json", JSON.stringify(conversation, null, 2)))}>
        Export as JSON
      </button>
      <button type="button" role="menuitem" class="is-bad" onClick={erase}>
        {isSure.value ? "Yes, delete it" : "Delete…"}
      </button>
    </div>
  );
}

function Item({ conversation }: { conversation: Conversation }) {
  const doing = useSignal<"nothing" | "menu" | "rename">("nothing");
  const more = useRef<HTMLDivElement>(null);
  const isOpen = store.openId.value === conversation.id;
  const close = () => {
    doing.value = "nothing";
    more.current?.querySelector("button")?.focus();
  };
  if (doing.value === "rename") {
    return (
      <li class="item">
        <Rename conversation={conversation} onDone={() => (doing.value = "nothing")} />
      </li>
    );
  }
  return (
    <li class={`item ${isOpen ? "is-open" : ""} ${doing.value === "menu" ? "has-menu" : ""}`}>
      <button
        type="button"
        class="item-name"
        aria-current={isOpen ? "true" : undefined}
        onClick={() => {
          store.open(conversation.id);
          isSidebarOpen.value = false;
        }}
      >
        {running.value.has(conversation.id) && <i class="dot is-live pulse" aria-label="answering" />}
        <span>{conversation.title}</span>
      </button>
      <div ref={more}>
        <IconButton label={`More for ${conversation.title}`} aria-haspopup="menu" aria-expanded={doing.value === "menu"} onClick={() => (doing.value = "menu")}>
          <More />
        </IconButton>
      </div>
      {doing.value === "menu" && <ItemMenu conversation={conversation} onClose={close} onRename={() => (doing.value = "rename")} />}
    </li>
  );
}

function ageOf(updated: number): string {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (updated >= midnight) return "Today";
  if (updated >= midnight - 86_400_000) return "Yesterday";
  return updated >= midnight - 6 * 86_400_000 ? "This week" : "Earlier";
}

export function Sidebar({ onNew }: { onNew: () => void }) {
  const groups = new Map<string, Conversation[]>();
  for (const one of store.listed.value) groups.set(ageOf(one.updated), [...(groups.get(ageOf(one.updated)) ?? []), one]);
  return (
    <nav class="sidebar" aria-label="Conversations" inert={!isMedium.value && !isSidebarOpen.value}>
      <div class="sidebar-head">
        <span class="brand">
          <img src="icon.svg" alt="" width="24" height="24" />
          sluice
        </span>
        <IconButton label="Close" class="for-phone" onClick={() => (isSidebarOpen.value = false)}>
          <Close />
        </IconButton>
      </div>
      <button type="button" class="new" onClick={onNew} title="Ctrl+Shift+O">
        <Plus /> New conversation
      </button>
      <div class="list">
        {[...groups].map(([age, all]) => (
          <section key={age} aria-label={age}>
            <h2>{age}</h2>
            <ul>
              {all.map((one) => (
                <Item key={one.id} conversation={one} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      <p class="sidebar-foot">
        {store.keepProblem.value ? `Not kept: ${store.keepProblem.value}. Export what you need.` : "Kept in this browser only."}
      </p>
    </nav>
  );
}
