// A button that is an icon; its label is read aloud, and shown as a tooltip.
// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren, JSX } from "preact";

interface Props extends Omit<JSX.IntrinsicElements["button"], "label" | "type"> {
  label: string;
  children: ComponentChildren;
}

export function IconButton({ label, children, ...rest }: Props) {
  return (
    <button type="button" {...rest} class={`icon-button ${(rest.class as string | undefined) ?? ""}`} aria-label={label} title={label}>
      {children}
    </button>
  );
}
