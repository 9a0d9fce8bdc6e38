// Markdown of a model to HTML that cannot do anything: no script, no style, no form, no picture (it would be fetched from
// elsewhere). DOMPurify decides; the Content-Security-Policy would stop what it let through.
// SPDX-License-Identifier: Apache-2.0
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import { highlight } from "./highlight";

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

const HARMLESS = new Set("b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td th thead tr u ul var".split(" "));

/** Tags that only shape text, without their attributes; any other tag becomes the text that it is. */
function harmless(html: string): string {
  let safe = "";
  let at = 0;
  for (const tag of html.matchAll(/<(\/?)([a-z][a-z\d]*)(?:\s[^<>]*)?>/gi)) {
    const name = (tag[2] ?? "").toLowerCase();
    safe += escape(html.slice(at, tag.index)) + (HARMLESS.has(name) ? `<${tag[1]}${name}>` : escape(tag[0]));
    at = tag.index + tag[0].length;
  }
  return safe + escape(html.slice(at)).replace(/&#38;(#?\w+;)/g, "&$1");
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    code({ text, lang }: Tokens.Code): string {
      const language = /^[\w+#.-]*/.exec(lang ?? "")?.[0] ?? "";
      return (
        `<figure class="code"><figcaption><span>${escape(language)}</span><button type="button" data-copy="">Copy</button></figcaption>` +
        `<pre tabindex="0"><code>${highlight(text, language)}</code></pre></figure>`
      );
    },
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return harmless(text);
    },
    image({ href, text }: Tokens.Image): string {
      return `<a href="${escape(href)}">${escape(text || href)}</a>`;
    },
    table(this: { parser: { parseInline(tokens: Token[]): string } }, { header, rows, align }: Tokens.Table): string {
      const cell = (tag: string) => (c: Tokens.TableCell, i: number) =>
        `<${tag}${align[i] ? ` align="${align[i]}"` : ""}>${this.parser.parseInline(c.tokens)}</${tag}>`;
      const body = rows.map((row) => `<tr>${row.map(cell("td")).join("")}</tr>`).join("");
      return `<div class="table" tabindex="0"><table><thead><tr>${header.map(cell("th")).join("")}</tr></thead><tbody>${body}</tbody></table></div>`;
    },
  },
});

const ALLOWED_TAGS =
  "a abbr b blockquote br button code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i input ins kbd li mark ol p pre q s " +
  "samp small span strong sub summary sup table tbody td th thead tr u ul var";
const ALLOWED_ATTR = ["href", "title", "align", "start", "colspan", "rowspan", "class", "type", "checked", "disabled", "data-copy", "tabindex"];
const OUR_CLASS = /^(code|table|hl-[a-z]+)$/;

const purify = DOMPurify(window);
purify.addHook("uponSanitizeAttribute", (_, data) => {
  if (data.attrName === "class" && !OUR_CLASS.test(data.attrValue)) data.keepAttr = false;
});
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
  // Only the box of a task list, which cannot be ticked; and only our button.
  if (node.tagName === "INPUT" && (node.getAttribute("type") !== "checkbox" || !node.hasAttribute("disabled"))) node.remove();
  if (node.tagName === "BUTTON" && !node.hasAttribute("data-copy")) node.remove();
});

/** A TrustedHTML where the browser has them: the page's policy lets nothing else into innerHTML. */
function sanitise(html: string): string {
  return purify.sanitize(html, {
    ALLOWED_TAGS: ALLOWED_TAGS.split(" "),
    ALLOWED_ATTR,
    ADD_URI_SAFE_ATTR: ALLOWED_ATTR.filter((name) => name !== "href"), // the others hold no address
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  }) as unknown as string;
}

export interface Block {
  raw: string;
  html(): string;
}

/** The text's blocks, in order. Each is rendered alone, so that a stream only renders its last one again. */
export function blocks(text: string): Block[] {
  return marked
    .lexer(text)
    .filter((token) => token.type !== "space" && token.type !== "def")
    .map((token) => ({ raw: token.raw, html: () => sanitise(marked.parser([token])) }));
}
