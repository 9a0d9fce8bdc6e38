// The page's icons: strokes in the colour of the text, 20 pixels wide. Beside words, or in buttons that have a label.
// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

function icon(children: ComponentChildren) {
  return () => (
    <svg class="icon" viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      {children}
    </svg>
  );
}

export const Plus = icon(<path d="M10 4v12M4 10h12" />);
export const Menu = icon(<path d="M3.5 6h13M3.5 10h13M3.5 14h8" />);
export const Close = icon(<path d="M5 5l10 10M15 5L5 15" />);
export const Gear = icon(
  <>
    <path d="M3.5 6h7M14.5 6h2M3.5 14h2M9.5 14h7" />
    <circle cx="12.5" cy="6" r="2" />
    <circle cx="7.5" cy="14" r="2" />
  </>,
);
export const Grid = icon(
  <>
    <rect x="3.5" y="3.5" width="5" height="5" rx="1" />
    <rect x="11.5" y="3.5" width="5" height="5" rx="1" fill="currentColor" />
    <rect x="3.5" y="11.5" width="5" height="5" rx="1" fill="currentColor" />
    <rect x="11.5" y="11.5" width="5" height="5" rx="1" />
  </>,
);
export const Send = icon(<path d="M10 16V4.5M5 9l5-5 5 5" />);
export const Stop = icon(<rect x="5.5" y="5.5" width="9" height="9" rx="1.5" fill="currentColor" />);
export const Copy = icon(
  <>
    <rect x="7" y="7" width="9" height="9.5" rx="2" />
    <path d="M13 4.5A1.5 1.5 0 0011.5 3h-6A1.5 1.5 0 004 4.5v7A1.5 1.5 0 005.5 13" />
  </>,
);
export const Check = icon(<path d="M4.5 10.5l3.5 3.5 7.5-8" />);
export const Pencil = icon(<path d="M4 16l.8-3.4 8.6-8.6a1.5 1.5 0 012.1 0l.5.5a1.5 1.5 0 010 2.1L7.4 15.2 4 16z" />);
export const Again = icon(<path d="M15.5 8A6 6 0 104.3 12M16 4v4h-4" />);
export const Left = icon(<path d="M12 5l-5 5 5 5" />);
export const Right = icon(<path d="M8 5l5 5-5 5" />);
export const Down = icon(<path d="M5 8l5 5 5-5" />);
export const More = icon(
  <g fill="currentColor" stroke="none">
    <circle cx="4.5" cy="10" r="1.4" />
    <circle cx="10" cy="10" r="1.4" />
    <circle cx="15.5" cy="10" r="1.4" />
  </g>,
);
export const Warning = icon(<path d="M10 3.5l7 12.5H3L10 3.5zM10 8.5v3.5M10 14.2v.1" />);
