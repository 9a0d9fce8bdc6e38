// Tokenizers written a second time, as short as possible and with JavaScript's regular expressions:
// an expectation that neither sluice nor llama.cpp had a hand in. Slow, and for the vocabularies of
// tokenizer_vocabulary.mjs alone.
import { in_byte_alphabet, kKind, kSpace } from "./tokenizer_vocabulary.mjs";

// Of the original tokenizer.json files. JavaScript has no (?i:...) and another idea of \s.
const contraction = "'(?:[sSſ]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])";
const s = "\\p{White_Space}";
const spaces = `${s}*[\\r\\n]+|${s}+(?!\\P{White_Space})|${s}+`;
const words = (letters, digits) =>
  `${contraction}|[^\\r\\n\\p{L}\\p{N}]?[${letters}]+|${digits}| ?[^${s}\\p{N}${letters}]+[\\r\\n]*|${spaces}`;
const upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const cased = (ending, digits) =>
  `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+${ending}|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*${ending}|` +
  `${digits}| ?[^${s}\\p{L}\\p{N}]+[\\r\\n\\/]*|${spaces}`;
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${s}\\p{L}\\p{N}]+|${s}+(?!\\P{White_Space})|${s}+`;
const deepseek_letters =
  "A-Za-z\\u{b5}\\u{c0}-\\u{d6}\\u{d8}-\\u{f6}\\u{f8}-\\u{1ba}\\u{1bc}-\\u{1bf}" +
  "\\u{1c4}-\\u{293}\\u{295}-\\u{2af}\\u{370}-\\u{373}\\u{376}\\u{377}\\u{37b}-\\u{37d}" +
  "\\u{37f}\\u{386}\\u{388}-\\u{38a}\\u{38c}\\u{38e}-\\u{3a1}\\u{3a3}-\\u{3f5}" +
  "\\u{3f7}-\\u{481}\\u{48a}-\\u{52f}\\u{531}-\\u{556}\\u{10a0}-\\u{10c5}" +
  "\\u{13a0}-\\u{13f5}\\u{13f8}-\\u{13fd}\\u{1c90}-\\u{1cba}\\u{1cbd}-\\u{1cbf}" +
  "\\u{1d00}-\\u{1d2b}\\u{1d6b}-\\u{1d77}\\u{1d79}-\\u{1d9a}\\u{1e00}-\\u{1f15}" +
  "\\u{1f18}-\\u{1f1d}\\u{1f20}-\\u{1f45}\\u{1f48}-\\u{1f4d}\\u{1f50}-\\u{1f57}\\u{1f59}" +
  "\\u{1f5b}\\u{1f5d}\\u{1f5f}-\\u{1f7d}\\u{1f80}-\\u{1fb4}\\u{1fb6}-\\u{1fbc}\\u{1fbe}" +
  "\\u{1fc2}-\\u{1fc4}\\u{1fc6}-\\u{1fcc}\\u{1fd0}-\\u{1fd3}\\u{1fd6}-\\u{1fdb}" +
  "\\u{1fe0}-\\u{1fec}\\u{1ff2}-\\u{1ff4}\\u{1ff6}-\\u{1ffc}\\u{2102}\\u{2107}" +
  "\\u{210a}-\\u{2113}\\u{2115}\\u{2119}-\\u{211d}\\u{2124}\\u{2126}\\u{2128}" +
  "\\u{212a}-\\u{212d}\\u{212f}-\\u{2134}\\u{2139}\\u{213c}-\\u{213f}\\u{2145}-\\u{2149}" +
  "\\u{214e}\\u{2183}\\u{2184}\\u{2c00}-\\u{2c7b}\\u{2c7e}-\\u{2ce4}\\u{2ceb}-\\u{2cee}" +
  "\\u{2cf2}\\u{2cf3}\\u{a640}-\\u{a66d}\\u{a680}-\\u{a69b}\\u{a722}-\\u{a76f}" +
  "\\u{a771}-\\u{a787}\\u{a78b}-\\u{a78e}\\u{ab70}-\\u{abbf}\\u{fb00}-\\u{fb06}" +
  "\\u{fb13}-\\u{fb17}\\u{ff21}-\\u{ff3a}\\u{ff41}-\\u{ff5a}\\u{10400}-\\u{1044f}" +
  "\\u{104b0}-\\u{104d3}\\u{104d8}-\\u{104fb}\\u{10c80}-\\u{10cb2}\\u{10cc0}-\\u{10cf2}" +
  "\\u{118a0}-\\u{118df}\\u{1e900}-\\u{1e943}";
const east_asian = "[一-龥ࠀ-一가-\\ud7ff]+";
const punctuated =
  "[!\"#$%&'()*+,\\-.\\/:;<=>?@\\[\\\\\\]^_`\\{|\\}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+";

const kForms = {
  qwen2: [words("\\p{L}", "\\p{N}")],
  qwen35: [words("\\p{L}\\p{M}", "\\p{N}")],
  llama3: [words("\\p{L}", "\\p{N}{1,3}")],
  gpt4o: [cased(`(?:${contraction})?`, "\\p{N}{1,3}")],
  tekken: [cased("", "\\p{N}")],
  gpt2: [gpt2],
  digits_then_gpt2: ["\\p{N}", gpt2],
  deepseek_llm: [
    "[\\r\\n]",
    `${s}?[${deepseek_letters}]+`,
    `${s}?[!-\\/:-~！-／：-～‘-‟　-。]+`,
    `${s}+$`,
    east_asian,
    "\\p{N}",
  ],
  deepseek_coder: ["[\\r\\n]", `${s}?\\p{L}+`, `${s}?\\p{P}+`, east_asian, "\\p{N}"],
  deepseek_v3: [
    "\\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    `${punctuated}| ?[\\p{P}\\p{S}]+[\\r\\n]*|${spaces}`,
  ],
  fallback: ["[\\p{P}\\$\\+<=>\\^~\\|]+", gpt2, "\\p{N}+", "[0-9][0-9][0-9]"],
};

// name -> {form, ignores_merges, adds_bos}
export const kPreTokenizers = {
  qwen2: { form: "qwen2" },
  "deepseek-r1-qwen": { form: "qwen2" },
  stablelm2: { form: "qwen2" },
  hunyuan: { form: "qwen2" },
  "solar-open": { form: "qwen2" },
  megrez: { form: "qwen2" },
  qwen35: { form: "qwen35" },
  "llama-bpe": { form: "llama3", ignores_merges: true, adds_bos: true },
  llama3: { form: "llama3", ignores_merges: true, adds_bos: true },
  "llama-v3": { form: "llama3", ignores_merges: true, adds_bos: true },
  lfm2: { form: "llama3", ignores_merges: true, adds_bos: true },
  glm4: { form: "llama3" },
  "chatglm-bpe": { form: "llama3" },
  dbrx: { form: "llama3" },
  "smaug-bpe": { form: "llama3" },
  "gpt-4o": { form: "gpt4o" },
  llama4: { form: "gpt4o" },
  "gpt-2": { form: "gpt2" },
  olmo: { form: "gpt2" },
  mpt: { form: "gpt2" },
  "phi-2": { form: "gpt2" },
  tekken: { form: "tekken", ignores_merges: true, adds_bos: true },
  "deepseek-llm": { form: "deepseek_llm" },
  "deepseek-coder": { form: "deepseek_coder" },
  "deepseek-v3": { form: "deepseek_v3" },
  starcoder: { form: "digits_then_gpt2" },
  refact: { form: "digits_then_gpt2" },
  smollm: { form: "digits_then_gpt2" },
  "command-r": { form: "digits_then_gpt2" },
  default: { form: "fallback" },
};

// Matches, and what stands between them.
function split(text, expression) {
  const pieces = [];
  let at = 0;
  for (const match of text.matchAll(new RegExp(expression, "gu"))) {
    if (match.index > at) pieces.push(text.slice(at, match.index));
    pieces.push(match[0]);
    at = match.index + match[0].length;
  }
  if (at < text.length) pieces.push(text.slice(at));
  return pieces;
}

export function pre_tokenize(form, text) {
  return kForms[form].reduce((pieces, e) => pieces.flatMap((piece) => split(piece, e)), [text]);
}

// Merges the best pair, leftmost first, until there is none; rank(left, right) is lower for better,
// undefined for no merge.
function merge_all(symbols, rank) {
  for (;;) {
    let best = -1;
    let best_rank = Infinity;
    for (let i = 0; i + 1 < symbols.length; ++i) {
      const r = rank(symbols[i], symbols[i + 1]);
      if (r !== undefined && r < best_rank) [best, best_rank] = [i, r];
    }
    if (best < 0) return symbols;
    symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
  }
}

const hex = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

export class Reference {
  constructor(vocabulary, { form, ignores_merges } = {}) {
    this.vocabulary = vocabulary;
    this.form = form;
    this.ignores_merges = ignores_merges;
    this.ids = new Map(vocabulary.tokens.map((token, id) => [token, id]));
    this.plain = new Map(
      vocabulary.tokens
        .map((token, id) => [token, id])
        .filter(([, id]) => [kKind.normal, kKind.user_defined].includes(vocabulary.kinds[id])),
    );
    if (vocabulary.merges)
      this.ranks = new Map(vocabulary.merges.map((pair, rank) => [pair.join(" "), rank]));
    this.pieces = new Map(); // piece -> ids
  }

  bpe(piece) {
    if (!this.pieces.has(piece)) {
      const word = in_byte_alphabet(piece);
      const whole = this.ignores_merges ? this.plain.get(word) : undefined;
      const parts = merge_all([...word], (l, r) => this.ranks.get(`${l} ${r}`));
      this.pieces.set(piece, whole === undefined ? parts.map((p) => this.ids.get(p)) : [whole]);
    }
    return this.pieces.get(piece);
  }

  spm(text) {
    const score = (l, r) => {
      const id = this.plain.get(l + r);
      return id === undefined ? undefined : -this.vocabulary.scores[id];
    };
    return merge_all([...text.replaceAll(" ", kSpace)], score).flatMap((part) =>
      this.plain.has(part)
        ? [this.plain.get(part)]
        : Array.from(Buffer.from(part), (byte) => this.ids.get(hex(byte))),
    );
  }

  // Special tokens are cut out one after another, the longest first.
  encode(text, parse_special, add_space_prefix = true) {
    const found = parse_special
      ? [kKind.user_defined, kKind.control, kKind.unknown]
      : [kKind.user_defined];
    const specials = this.vocabulary.tokens
      .map((token, id) => ({ token, id }))
      .filter(({ id }) => found.includes(this.vocabulary.kinds[id]))
      .sort((a, b) => Buffer.byteLength(b.token) - Buffer.byteLength(a.token));
    let fragments = [text];
    for (const { token, id } of specials)
      fragments = fragments.flatMap((f) =>
        typeof f === "string"
          ? f.split(token).flatMap((part, i) => (i ? [id, part] : [part]))
          : [f],
      );
    fragments = fragments.filter((f) => f !== "");
    return fragments.flatMap((f, i) => {
      if (typeof f !== "string") return [f];
      if (this.form) return pre_tokenize(this.form, f).flatMap((piece) => this.bpe(piece));
      const has_prefix = add_space_prefix && (i === 0 || typeof fragments[i - 1] !== "string");
      return this.spm((has_prefix ? " " : "") + f);
    });
  }
}
