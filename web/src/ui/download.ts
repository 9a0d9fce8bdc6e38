// A file for the person to keep.
// SPDX-License-Identifier: Apache-2.0

export function download(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^-+|-+$/g, "") || "conversation";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
