// Above the chat: which conversation, which model, how fast it is, and the way to the map and the settings.
// SPDX-License-Identifier: Apache-2.0
import { connection, samples, state } from "../api/live";
import * as store from "../store/store";
import { IconButton } from "../ui/icon_button";
import { Gear, Grid, Menu, Plus } from "../ui/icons";
import { areSettingsOpen, isMapOpen, isSidebarOpen, toggleMap } from "../ui/layout";

const STATUS = {
  connecting: "Connecting to the server",
  live: "Connected",
  lost: "The server cannot be reached; trying again",
  refused: "The server wants an API key (settings)",
};

function Status() {
  const model = state.value?.model;
  const how = connection.value;
  const rate = samples.value.at(-1)?.tokensPerSecond ?? 0;
  return (
    <span class="status" title={STATUS[how]}>
      <i class={`dot is-${how}`} />
      <span class="unseen">{STATUS[how]}. </span>
      <span class="model">{how === "lost" ? "Server not reached" : how === "refused" ? "API key needed" : (model?.name ?? "…")}</span>
      {how === "live" && rate > 0 && <span class="rate">{rate.toFixed(1)} tok/s</span>}
    </span>
  );
}

export function Header({ onNew }: { onNew: () => void }) {
  return (
    <header class="header">
      <IconButton label="Conversations" class="for-phone" aria-expanded={isSidebarOpen.value} onClick={() => (isSidebarOpen.value = true)}>
        <Menu />
      </IconButton>
      <h1>{store.current.value?.title ?? "New conversation"}</h1>
      <Status />
      <IconButton label="New conversation" class="for-phone" onClick={onNew}>
        <Plus />
      </IconButton>
      <IconButton id="map-toggle" label="Expert map" title="Expert map (Ctrl+Shift+E)" aria-pressed={isMapOpen.value} onClick={toggleMap}>
        <Grid />
      </IconButton>
      <IconButton label="Settings" onClick={() => (areSettingsOpen.value = true)}>
        <Gear />
      </IconButton>
    </header>
  );
}
