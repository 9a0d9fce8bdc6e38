// The settings: how the next answers are sampled, what the model is told first, the key, the colours.
// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { followServer } from "../api/live";
import { defaults, settings, type Settings, type Theme } from "../store/settings";
import { IconButton } from "../ui/icon_button";
import { Close } from "../ui/icons";
import { areSettingsOpen } from "../ui/layout";

type NumberName = "temperature" | "topP" | "topK" | "minP" | "seed" | "maxTokens";

interface NumberField {
  name: NumberName;
  label: string;
  help: string;
  min: number;
  max?: number;
  step: number | "any";
}

const NUMBERS: NumberField[] = [
  { name: "temperature", label: "Temperature", help: "0 takes the likeliest token, higher is freer", min: 0, max: 5, step: "any" },
  { name: "topP", label: "Top p", help: "Likeliest tokens up to this share", min: 0, max: 1, step: "any" },
  { name: "topK", label: "Top k", help: "This many likeliest tokens, 0 for all", min: 0, step: 1 },
  { name: "minP", label: "Min p", help: "At least this share of the likeliest", min: 0, max: 1, step: "any" },
  { name: "seed", label: "Seed", help: "The same seed gives the same answer", min: 0, step: 1 },
  { name: "maxTokens", label: "Max tokens", help: "An answer ends here at the latest", min: 1, step: 1 },
];

const THEMES: [Theme, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function set(changes: Partial<Settings>): void {
  settings.value = { ...settings.peek(), ...changes };
}

function NumberInput({ field }: { field: NumberField }) {
  const { name, label, help, min, max, step } = field;
  const onInput = (input: HTMLInputElement) => {
    if (input.validity.valid) set({ [name]: input.value === "" ? null : Number(input.value) });
  };
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="number"
        inputMode="decimal"
        min={min}
        max={max}
        step={step}
        placeholder="default"
        value={settings.value[name] ?? ""}
        aria-describedby={`help-${name}`}
        onInput={(event) => onInput(event.currentTarget)}
      />
      <small id={`help-${name}`}>{help}</small>
    </label>
  );
}

function ThemeChoice() {
  return (
    <fieldset class="themes">
      <legend>Colours</legend>
      {THEMES.map(([theme, label]) => (
        <label key={theme}>
          <input type="radio" name="theme" checked={settings.value.theme === theme} onChange={() => set({ theme })} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
}

const KEYS: [string, string][] = [
  ["Enter", "send"],
  ["Shift Enter", "new line"],
  ["Esc", "stop the answer, close what is open"],
  ["↑", "edit the last message"],
  ["/", "to the message field"],
  ["Ctrl Shift O", "new conversation"],
  ["Ctrl Shift E", "expert map"],
];

function Keys() {
  return (
    <section class="keys">
      <h3>Keys</h3>
      <dl>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function SettingsDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const close = () => dialog.current?.close();
  return (
    <dialog
      class="settings"
      ref={dialog}
      aria-labelledby="settings-title"
      onClose={() => (areSettingsOpen.value = false)}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="settings-body">
        <header>
          <h2 id="settings-title">Settings</h2>
          <IconButton label="Close" onClick={close}>
            <Close />
          </IconButton>
        </header>
        <label class="field">
          <span>System message</span>
          <textarea rows={3} value={settings.value.system} placeholder="What the model is told before each conversation" onInput={(e) => set({ system: e.currentTarget.value })} />
        </label>
        <section aria-label="Sampling">
          <h3>Sampling</h3>
          <div class="numbers">
            {NUMBERS.map((field) => (
              <NumberInput key={field.name} field={field} />
            ))}
          </div>
        </section>
        <label class="field">
          <span>API key</span>
          <input
            type="password"
            autocomplete="off"
            value={settings.value.apiKey}
            placeholder="none"
            onInput={(e) => set({ apiKey: e.currentTarget.value.trim() })}
            onChange={followServer}
          />
          <small>Only where the server asks for one. Kept in this browser.</small>
        </label>
        <ThemeChoice />
        <Keys />
        <footer>
          <button type="button" class="button" onClick={() => set({ ...defaults, apiKey: settings.peek().apiKey })}>
            Reset
          </button>
          <a href="licenses.txt" target="_blank" rel="noopener">
            Licences
          </a>
          <button type="button" class="button is-main" onClick={close}>
            Done
          </button>
        </footer>
      </div>
    </dialog>
  );
}
