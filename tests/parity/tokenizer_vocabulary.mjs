// Vocabularies for the comparison of tokenizers, and the GGUF files that carry them. Merges are
// trained on the torture texts without any pre-tokenizer: they reach across words, digits, marks and
// spaces, so that a text which is cut in a wrong place gets other tokens. Deterministic.
import { kPlainTexts, kSpecialTexts } from "./tokenizer_texts.mjs";
import { write_gguf, value_string, value_u32 } from "./gguf_edit.mjs";

export const kKind = { normal: 1, unknown: 2, control: 3, user_defined: 4, unused: 5, byte: 6 };
export const kSpace = "\u2581";

// byte -> character of byte-level BPE.
export const kByteAlphabet = (() => {
  const alphabet = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; ++byte) {
    const itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    alphabet.push(String.fromCharCode(itself ? byte : next++));
  }
  return alphabet;
})();

export const in_byte_alphabet = (text) =>
  Array.from(Buffer.from(text), (byte) => kByteAlphabet[byte]).join("");

// A little prose on top, so that common words are tokens too.
function generated_text(n_words) {
  const words =
    "the of and to in is that it was for on are with as his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know".split(
      " ",
    );
  let state = 12345;
  const random = (n) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % n;
  };
  const text = [];
  for (let i = 0; i < n_words; ++i) {
    let word = words[Math.floor((random(words.length) * random(words.length)) / words.length)];
    if (random(9) === 0) word = word[0].toUpperCase() + word.slice(1);
    if (random(40) === 0) word = word.toUpperCase();
    if (random(25) === 0) word = String(random(10 ** (1 + random(6))));
    text.push(
      word + [" ", " ", " ", " ", " ", ", ", ". ", "\n", ".\n\n", "  ", "! ", "'s "][random(12)],
    );
  }
  return text.join("");
}

function training_text() {
  const torture = [...Object.values(kPlainTexts), ...Object.values(kSpecialTexts)].join("\n");
  return torture + torture + generated_text(3000);
}

const kBarrier = "";

// n merges [left, right] of frequent adjacent pairs in a list of symbols, most frequent first (of
// equals the one that occurs first); none reaches across a barrier. To be quick, 25 of them are
// chosen at a time.
function train(symbols, n) {
  const names = [...new Set([kBarrier, ...symbols])];
  const ids = new Map(names.map((name, id) => [name, id]));
  const merges = [];
  let text = symbols.map((symbol) => ids.get(symbol));
  while (merges.length < n) {
    const counts = new Map();
    for (let i = 1; i < text.length; ++i) {
      if (text[i - 1] === 0 || text[i] === 0) continue;
      const pair = text[i - 1] * 65536 + text[i];
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
    const best = [...counts].filter(([, count]) => count > 1).sort((a, b) => b[1] - a[1]);
    if (best.length === 0) break;
    const results = new Map();
    for (const [pair] of best.slice(0, Math.min(25, n - merges.length))) {
      const [left, right] = [names[Math.floor(pair / 65536)], names[pair % 65536]];
      merges.push([left, right]);
      if (!ids.has(left + right)) ids.set(left + right, names.push(left + right) - 1);
      results.set(pair, ids.get(left + right));
    }
    const merged = [];
    for (let i = 0; i < text.length; ++i) {
      const result = results.get(text[i] * 65536 + text[i + 1]);
      if (result !== undefined) ++i;
      merged.push(result ?? text[i]);
    }
    text = merged;
  }
  return merges;
}

const kSpecials = [
  ["<|endoftext|>", kKind.control],
  ["<|im_start|>", kKind.control],
  ["<|im_end|>", kKind.control],
  ["<tool_call>", kKind.user_defined],
  ["</tool_call>", kKind.user_defined],
  ["==>", kKind.user_defined],
  ["=>>>", kKind.user_defined],
];

// Without the merges that make the text of a special token, and what builds on them: special tokens
// come from cutting alone.
function without_specials(merges) {
  const gone = new Set([...kSpecials.map(([token]) => token), "<s>", "</s>", "<unk>"]);
  return merges.filter(([left, right]) => {
    const is_gone = [left, right, left + right].some((word) => gone.has(word));
    if (is_gone) gone.add(left + right);
    return !is_gone;
  });
}

// {model, tokens, kinds, merges, bos} of byte-level BPE. With `single_digits` no token holds more
// than one digit and nothing beside it.
export function make_bpe_vocabulary(n_merges, single_digits = false) {
  const parts = single_digits ? training_text().split(/(\p{N})/u) : [training_text()];
  const symbols = parts.flatMap((part) => [kBarrier, ...in_byte_alphabet(part)]);
  const merges = without_specials(train(symbols, n_merges));
  // These are tokens without merges: only who ignores merges finds them.
  const whole = [" helpful", "Привет", " ПРИВЕТ", "quick", "ValueError", "天地玄黄"];
  const tokens = [
    ...new Set([
      ...kByteAlphabet,
      ...merges.map((pair) => pair.join("")),
      ...whole.map(in_byte_alphabet),
    ]),
  ];
  const kinds = tokens.map(() => kKind.normal);
  for (const [token, kind] of kSpecials) {
    tokens.push(token);
    kinds.push(kind);
  }
  return { model: "gpt2", tokens, kinds, merges, bos: tokens.indexOf("<|endoftext|>") };
}

// {model, tokens, kinds, scores, bos} of SentencePiece-style BPE: like Llama's, control tokens and
// bytes first, then merged pieces with falling scores, then characters. Only the first half of the
// characters are tokens, so that the rest falls back to bytes.
export function make_spm_vocabulary(n_merges) {
  const text = ` ${training_text()}`.replaceAll(" ", kSpace);
  const characters = [...new Set(text)].filter((c) => c !== "\n" && !/[\x00-\x1f]/.test(c));
  const usual = new Set(characters.slice(0, Math.ceil(characters.length / 2)));
  const symbols = [...text].map((c) => (usual.has(c) ? c : "\u0000"));
  const merges = without_specials(train(symbols, n_merges)).filter(
    (pair) => !pair.join("").includes("\u0000"),
  );
  const entries = [
    ["<unk>", kKind.unknown, 0],
    ["<s>", kKind.control, 0],
    ["</s>", kKind.control, 0],
  ];
  for (let byte = 0; byte < 256; ++byte)
    entries.push([`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, kKind.byte, 0]);
  const known = new Set(entries.map(([token]) => token));
  merges.forEach(([left, right], i) => {
    if (known.has(left + right)) return;
    known.add(left + right);
    // Some scores are equal: then the leftmost pair counts.
    entries.push([left + right, kKind.normal, -Math.floor(i / 3)]);
  });
  for (const c of usual) if (!known.has(c)) entries.push([c, kKind.normal, -n_merges - 1]);
  for (const [token, kind] of kSpecials) entries.push([token, kind, 0]);
  return {
    model: "llama",
    tokens: entries.map(([token]) => token),
    kinds: entries.map(([, kind]) => kind),
    scores: entries.map(([, , score]) => score),
    bos: 1,
  };
}

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const string = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const array = (element_type, parts) => ({
  type: 9,
  raw: Buffer.concat([u32(element_type), u64(parts.length), ...parts]),
});
const strings = (texts) => array(8, texts.map(string));
const i32s = (values) =>
  array(
    5,
    values.map((value) => Buffer.from(Int32Array.of(value).buffer)),
  );
const f32s = (values) =>
  array(
    6,
    values.map((value) => Buffer.from(Float32Array.of(value).buffer)),
  );
const bool = (value) => ({ type: 7, raw: Buffer.from([value ? 1 : 0]) });

// A file without tensors: sluice and llama.cpp read the vocabulary alone. `flags` become keys
// tokenizer.ggml.<name>.
export function write_vocabulary(path, vocabulary, pre, flags = {}) {
  const keys = new Map([
    ["general.architecture", value_string("llama")],
    ["general.name", value_string("tokenizer test")],
    ["llama.block_count", value_u32(1)],
    ["llama.context_length", value_u32(64)],
    ["llama.embedding_length", value_u32(32)],
    ["llama.attention.head_count", value_u32(1)],
    ["llama.feed_forward_length", value_u32(32)],
    ["tokenizer.ggml.model", value_string(vocabulary.model)],
    ["tokenizer.ggml.tokens", strings(vocabulary.tokens)],
    ["tokenizer.ggml.token_type", i32s(vocabulary.kinds)],
    ["tokenizer.ggml.bos_token_id", value_u32(vocabulary.bos)],
  ]);
  if (pre !== undefined) keys.set("tokenizer.ggml.pre", value_string(pre));
  if (vocabulary.scores) keys.set("tokenizer.ggml.scores", f32s(vocabulary.scores));
  if (vocabulary.merges)
    keys.set("tokenizer.ggml.merges", strings(vocabulary.merges.map((pair) => pair.join(" "))));
  for (const [name, value] of Object.entries(flags))
    keys.set(`tokenizer.ggml.${name}`, bool(value));
  write_gguf(path, { keys, tensors: new Map() });
}
