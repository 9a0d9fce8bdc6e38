# What is kept out of training, decided by a hash of the thing itself: the same on every machine,
# whatever the seed. A phrasing is a sentence with {slots}; operands are what fills them.
# SPDX-License-Identifier: Apache-2.0
import hashlib
from dataclasses import dataclass
from itertools import product

HELD_OUT_PERCENT = 12


def is_held_out(space, item):
    """Whether `item` (a text) of a `space` (a kind of thing, by name) belongs to the evaluation."""
    digest = hashlib.blake2b(f"{space}|{item}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") % 100 < HELD_OUT_PERCENT


def phrases(*parts):
    """All sentences of a pattern: each part is a text or a list of texts to choose from."""
    return ["".join(p) for p in product(*([p] if isinstance(p, str) else p for p in parts))]


class Phrasings:
    """The sentences of one task, split once. A held-out one is made of parts that training knows."""

    def __init__(self, space, templates):
        templates = list(dict.fromkeys(templates))
        self.space = space
        self.held_out = [t for t in templates if is_held_out(space, t)]
        self.train = [t for t in templates if not is_held_out(space, t)]
        if not self.held_out:  # a task with few sentences still has one to be judged by
            self.held_out = [self.train.pop()]
        if not self.train:
            raise ValueError(f"{space}: no phrasing is left to train on")

    def pick(self, rng, held_out):
        return rng.choice(self.held_out if held_out else self.train)


@dataclass
class Turn:
    """One question with its answer, and what is needed to dress it up or to check it."""

    kind: str
    question: str
    answer: str
    phrasing: str  # the template; with `operands` it says what must not be in both splits
    operands: str = ""  # empty: only the phrasing is split
    short: str | None = None  # the bare value, for those who want one word
    value: object = None  # the value as JSON has it
    thinking: str | None = None
    check: str = "exact"  # exact, json or contains
    expected: object = None  # what to check against, where it is not the answer itself

    def __post_init__(self):
        if self.expected is None:
            self.expected = self.answer


def draw_operands(rng, held_out, space, make):
    """Draws with make(rng) -> (operands, name) until the split fits. `space` None: no split."""
    while True:
        operands, name = make(rng)
        if space is None or is_held_out(space, name) == held_out:
            return operands, name


def listed(items, last=" and "):
    """a, b and c"""
    items = [str(i) for i in items]
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + last + items[-1]
