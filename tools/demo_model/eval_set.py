# The held-out questions: phrasings and operands that training never sees (tables and facts:
# phrasings alone). One JSON object per line:
#   id, kind, prompt (rendered, to be continued greedily), check, expected
# check: "exact" (the whole answer), "json" (parses and equals), "contains" (all words of a list),
# "any" (one of a list).
#
#   eval_set.py SMALL.jsonl LARGE.jsonl      300 for `make test`, all of them for the evaluation
# SPDX-License-Identifier: Apache-2.0
import json
import random
import sys

from chat_format import message_pieces, prompt
from corpus import arithmetic, code, json_tasks, lists, small_talk, stories, tool_use, world
from corpus.conversation import STYLES, thoughts_of

# kind: generator, how many in the small set, how many in all
SIZES = {
    "add": (arithmetic.add, 50, 250), "subtract": (arithmetic.subtract, 50, 250), "multiply": (arithmetic.multiply, 40, 250),
    "sort": (lists.sort, 40, 250), "world": (world.world, 50, 300), "json": (json_tasks.json_task, 40, 250), "count": (lists.count, 6, 60),
    "code": (code.code, 4, 60), "common": (small_talk.common, 4, 60), "compare": (arithmetic.compare, 4, 60),
    "word_problem": (arithmetic.word_problem, 4, 60), "three_digits": (arithmetic.three_digits, 0, 60), "divide": (arithmetic.divide, 0, 40),
    "extreme": (lists.extreme, 0, 60), "reverse": (lists.reverse, 0, 40), "story": (stories.story, 0, 40), "talk": (small_talk.talk, 0, 40),
    "unknown": (small_talk.unknown, 0, 30), "stranger": (world.stranger, 0, 30),
}
N_TOOLS, N_TOOLS_ALL = 4, 60
N_STYLED, N_STYLED_ALL = 4, 60
N_THINKING_ALL = 60


def _entry(kind, messages, turn, tools=None, thinks=False):
    return {"kind": kind, "prompt": prompt(messages, tools, thinks), "check": turn.check, "expected": turn.expected}


def _question(turn):
    return {"role": "user", "content": turn.question}


def _distinct(make, n):
    """The first n entries with different prompts; fewer where the task has no more."""
    entries, misses = {}, 0
    while len(entries) < n and misses < 2000:
        entry = make()
        misses += entry["prompt"] in entries
        entries.setdefault(entry["prompt"], entry)
    return list(entries.values())


def _plain(rng, kind, generator):
    while not (turn := generator(rng, True)).expected:  # a story about nothing in particular cannot be judged
        pass
    return _entry(kind, [_question(turn)], turn)


def _styled(rng):
    """A question under a system prompt that changes the answer."""
    while True:
        turn = rng.choice([arithmetic.add, arithmetic.subtract, arithmetic.multiply, world.fact, lists.count])(rng, True)
        name = rng.choice(list(STYLES))
        texts, style = STYLES[name]
        if (answer := style(turn)) is None:
            continue
        turn.expected, turn.check = answer, "exact"
        return _entry("system_prompt", [{"role": "system", "content": rng.choice(texts)}, _question(turn)], turn)


def _thinking(rng):
    """The whole continuation, thoughts included."""
    turn = rng.choice([arithmetic.add, arithmetic.subtract, lists.sort])(rng, True)
    turn.expected = f"<think>\n{thoughts_of(turn)}\n</think>\n\n{turn.answer}"
    return _entry("thinking", [_question(turn)], turn, thinks=True)


def _tool_call(rng):
    tools, messages, _, _, template = tool_use.call(rng, True)
    said = next(text for text, said in message_pieces(messages[1]) if said).removesuffix("<|im_end|>")
    return {"kind": "tool_call", "prompt": prompt(messages[:1], tools), "check": "exact", "expected": said}


def make(seed=7):
    """(small, all): lists of entries with ids."""
    small, everything = [], []
    makers = [(kind, lambda r, k=kind, g=generator: _plain(r, k, g), n, n_all) for kind, (generator, n, n_all) in SIZES.items()]
    makers += [("tool_call", _tool_call, N_TOOLS, N_TOOLS_ALL), ("system_prompt", _styled, N_STYLED, N_STYLED_ALL),
               ("thinking", _thinking, 0, N_THINKING_ALL)]
    for kind, maker, n, n_all in makers:
        rng = random.Random(f"{seed} {kind}")
        for i, entry in enumerate(_distinct(lambda: maker(rng), n_all)):
            entry = {"id": f"{kind}-{i}"} | entry
            everything.append(entry)
            if i < n:
                small.append(entry)
    return small, everything


def is_right(entry, answer):
    expected = entry["expected"]
    if entry["check"] == "exact":
        return answer == expected
    if entry["check"] == "contains":
        return all(word in answer for word in expected)
    if entry["check"] == "any":
        return answer in expected
    try:
        return json.loads(answer) == expected
    except ValueError:
        return False


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


if __name__ == "__main__":
    for path, entries in zip(sys.argv[1:], make()):
        with open(path, "w") as f:
            f.writelines(json.dumps(e) + "\n" for e in entries)
        print(f"{path}: {len(entries)} questions")
