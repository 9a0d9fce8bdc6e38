# The tokenizer of the demo models: byte-level BPE behind the `qwen2` pre-tokenizer, every digit a
# token of its own. Learns its merges from the corpus in pure Python, which the small number of
# different words makes quick; encodes ASCII only, which is all the corpus has.
#
#   tokenizer.py OUT.json [N_ROWS]
# SPDX-License-Identifier: Apache-2.0
import json
import random
import re
import sys
from collections import Counter, defaultdict

VOCABULARY = 2048
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
SPECIAL = CONTROL + USER_DEFINED

# The qwen2 form with its classes written out for ASCII.
PIECES = re.compile(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL_SPLIT = re.compile("(" + "|".join(re.escape(s) for s in sorted(SPECIAL, key=len, reverse=True)) + ")")


def _byte_alphabet():
    """The printable stand-in of each byte, as GPT-2 chose them."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(others)}


ALPHABET = _byte_alphabet()


def plain_parts(text):
    """Text without special tokens, cut into the pieces that merges stay inside of."""
    if not text.isascii():
        raise ValueError(f"the corpus is ASCII, found {text!r}")
    return ["".join(ALPHABET[ord(c)] for c in piece) for piece in PIECES.findall(text)]


def learn_merges(counts, n_merges):
    """counts: piece -> how often. The most frequent pair is merged, ties by its text."""
    words = [(list(w), n) for w, n in sorted(counts.items())]
    pairs, places = Counter(), defaultdict(set)
    for i, (symbols, n) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += n
            places[pair].add(i)
    merges = []
    while len(merges) < n_merges and pairs:
        best = min(pairs, key=lambda p: (-pairs[p], p))
        if pairs[best] < 2:
            break
        merges.append(best)
        for i in places.pop(best):
            symbols, n = words[i]
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] -= n
            merged = _merge(symbols, best)
            words[i] = (merged, n)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += n
                places[pair].add(i)
        pairs = +pairs  # without the pairs that are gone
    return merges


def _merge(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


class Tokenizer:
    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.tokens = [ALPHABET[b] for b in range(256)] + [a + b for a, b in self.merges]
        self.tokens += [f"[PAD{i}]" for i in range(VOCABULARY - len(SPECIAL) - len(self.tokens))] + SPECIAL
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            raise ValueError("two tokens have the same text")
        self._rank = {m: r for r, m in enumerate(self.merges)}
        self._cache = {}

    def kinds(self):
        """1 normal, 3 control, 4 user-defined, 5 unused: as GGUF numbers them."""
        return [3 if t in CONTROL else 4 if t in USER_DEFINED else 5 if t.startswith("[PAD") else 1 for t in self.tokens]

    def _encode_piece(self, piece):
        symbols = list(piece)
        while len(symbols) > 1:
            rank, pair = min((self._rank.get(p, len(self._rank)), p) for p in zip(symbols, symbols[1:]))
            if rank == len(self._rank):
                break
            symbols = _merge(symbols, pair)
        return [self.ids[s] for s in symbols]

    def encode(self, text):
        out = []
        for part in SPECIAL_SPLIT.split(text):
            if part in self.ids and part in SPECIAL:
                out.append(self.ids[part])
                continue
            for piece in plain_parts(part):
                if piece not in self._cache:
                    self._cache[piece] = self._encode_piece(piece)
                out += self._cache[piece]
        return out

    def decode(self, ids):
        back = {c: b for b, c in ALPHABET.items()}
        out = bytearray()
        for i in ids:
            token = self.tokens[i]
            out += token.encode() if token in SPECIAL else bytes(back[c] for c in token)
        return out.decode("utf-8", "replace")

    def save(self, path):
        with open(path, "w") as f:
            json.dump({"merges": [" ".join(m) for m in self.merges]}, f, indent=0)
            f.write("\n")

    @staticmethod
    def load(path):
        with open(path) as f:
            return Tokenizer([m.split(" ") for m in json.load(f)["merges"]])


def train(n_rows=6000, seed=1):
    from corpus.conversation import training_row
    counts, rng = Counter(), random.Random(seed)
    for _ in range(n_rows):
        texts = []
        training_row(rng, lambda text: texts.append(text) or [0] * (len(text) // 4), 512)
        for part in SPECIAL_SPLIT.split("".join(texts)):
            if part not in SPECIAL:
                counts.update(plain_parts(part))
    return Tokenizer(learn_merges(counts, VOCABULARY - 256 - len(SPECIAL)))


if __name__ == "__main__":
    tokenizer = train(int(sys.argv[2]) if len(sys.argv) > 2 else 6000)
    tokenizer.save(sys.argv[1])
    print(f"{len(tokenizer.merges)} merges, the last: {tokenizer.merges[-3:]}")
