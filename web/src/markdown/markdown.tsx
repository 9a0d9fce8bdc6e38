// A text of Markdown on the screen. Blocks that are complete stay as they are while the text grows: what a person selects
// stays selected, and a long answer costs no more per token than a short one.
// SPDX-License-Identifier: Apache-2.0
import { memo } from "preact/compat";
import { blocks, type Block } from "./render";

const One = memo(
  ({ block }: { block: Block }) => <div class="block" dangerouslySetInnerHTML={{ __html: block.html() }} />,
  (a, b) => a.block.raw === b.block.raw,
);

export const Markdown = memo(({ text }: { text: string }) => (
  <div class="markdown">
    {blocks(text).map((block, i) => (
      <One key={i} block={block} />
    ))}
  </div>
));
