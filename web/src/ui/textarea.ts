// What the page's fields for text have in common.
// SPDX-License-Identifier: Apache-2.0

/** As tall as its text; CSS bounds it. */
export function fitHeight(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

/** Enter, unless it begins a line or ends a word in an input method. */
export function sendsOn(event: KeyboardEvent): boolean {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing;
}
