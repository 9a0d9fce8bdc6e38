// To the clipboard, also over plain HTTP, where browsers hide navigator.clipboard.
// SPDX-License-Identifier: Apache-2.0

function copyTheOldWay(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyTheOldWay(text);
  }
}

/** The copy buttons of code, wherever they are. */
export function answerCopyButtons(): void {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>("button[data-copy]") : null;
    const code = button?.closest("figure")?.querySelector("code");
    if (!button || !code) return;
    void copy(code.textContent ?? "").then((copied) => {
      button.textContent = copied ? "Copied" : "Not allowed";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  });
}
