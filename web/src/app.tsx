// The whole page: conversations to the left, the chat, the expert map to the right; and the keys that work everywhere.
// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";
import { announcement } from "./chat/run";
import { Composer, focusComposer } from "./chat/composer";
import { Header } from "./chat/header";
import { SettingsDialog } from "./chat/settings_dialog";
import { Sidebar } from "./chat/sidebar";
import { Thread } from "./chat/thread";
import { running, stop } from "./chat/run";
import { MapPanel } from "./map/panel";
import * as store from "./store/store";
import { areSettingsOpen, isMapOpen, isMedium, isSidebarOpen, isWide, toggleMap } from "./ui/layout";

export function newChat(): void {
  store.open(null);
  isSidebarOpen.value = false;
  focusComposer();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

function onEscape(): void {
  const id = store.openId.peek();
  if (isSidebarOpen.peek()) isSidebarOpen.value = false;
  else if (isMapOpen.peek() && !isWide.peek()) isMapOpen.value = false;
  else if (id && running.peek().has(id)) stop(id);
  else focusComposer();
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || areSettingsOpen.peek()) return;
  const chord = (event.ctrlKey || event.metaKey) && event.shiftKey ? event.key.toLowerCase() : "";
  if (chord === "o") newChat();
  else if (chord === "e") toggleMap();
  else if (event.key === "Escape") onEscape();
  else if (event.key === "/" && !isTyping(event.target)) focusComposer();
  else return;
  event.preventDefault();
}

export function App() {
  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  // A drawer over the chat takes the focus with it: what lies under it is out of reach.
  const covered = (isSidebarOpen.value && !isMedium.value) || (isMapOpen.value && !isWide.value);
  return (
    <div class={`app ${isMapOpen.value ? "with-map" : ""} ${isSidebarOpen.value ? "with-sidebar" : ""}`}>
      <a class="skip" href="#composer">
        Skip to the message field
      </a>
      <Sidebar onNew={newChat} />
      <main class="chat" inert={covered}>
        <Header onNew={newChat} />
        <Thread />
        <Composer />
      </main>
      {covered && <div class="shade" onClick={onEscape} />}
      {isMapOpen.value && <MapPanel />}
      {areSettingsOpen.value && <SettingsDialog />}
      <div class="unseen" role="status">
        {announcement}
      </div>
    </div>
  );
}
