# Conversations: turns of many kinds one after the other, with or without a system prompt, up to a
# number of tokens. One conversation is one row of training data, so a row begins as a prompt does.
# SPDX-License-Identifier: Apache-2.0
import json

from chat_format import message_pieces, system_piece

from . import arithmetic, code, json_tasks, lists, small_talk, stories, tool_use, world

# kind: generator, weight. The weights follow how hard a task is to learn, not how often one asks.
KINDS = {
    "add": (arithmetic.add, 15), "subtract": (arithmetic.subtract, 17), "multiply": (arithmetic.multiply, 9),
    "divide": (arithmetic.divide, 3), "three_digits": (arithmetic.three_digits, 5), "word_problem": (arithmetic.word_problem, 4),
    "compare": (arithmetic.compare, 2), "sort": (lists.sort, 15), "extreme": (lists.extreme, 3), "count": (lists.count, 5),
    "count_one": (lists.count_one, 2), "reverse": (lists.reverse, 2), "world": (world.world, 16), "stranger": (world.stranger, 1),
    "world_about": (world.about, 1), "json": (json_tasks.json_task, 9), "story": (stories.story, 5), "code": (code.code, 4),
    "talk": (small_talk.talk, 4), "common": (small_talk.common, 4), "unknown": (small_talk.unknown, 2),
}
_GENERATORS = [g for g, _ in KINDS.values()]
_WEIGHTS = [w for _, w in KINDS.values()]
FOLLOW_UPS = [arithmetic.follow_up, lists.follow_up, world.follow_up]

NEUTRAL = ["You are a helpful assistant.", "You are a friendly assistant.", "You are sluice's demo model.", "Help the user.", "Be brief.",
           "You are a helpful AI assistant. Answer the questions of the user."]
# What a system prompt can ask for: its texts, and the answer it makes of a turn (None: does not fit).
STYLES = {
    "short": (["Answer in one word.", "Answer with one word only.", "Reply with the bare answer only.", "Give only the answer, no sentence.",
               "Answer as briefly as possible."], lambda t: t.short),
    "json": (["Answer in JSON.", "Always answer in JSON.", "Reply only with JSON.", "Every answer must be a JSON object.", "You speak only JSON."],
             lambda t: t.answer if t.check == "json" else None if t.value is None else json.dumps({"answer": t.value})),
    "pirate": (["Talk like a pirate.", "You are a pirate.", "Answer like a pirate."], lambda t: None if "\n" in t.answer else f"Arr! {t.answer}"),
    "over": (["End each answer with the word Over.", "Say Over. after each answer.", "You speak over the radio: end with Over."],
             lambda t: None if t.check == "json" or "\n" in t.answer else f"{t.answer} Over."),
}
SHARES = {"none": 66, "neutral": 14, "short": 8, "json": 6, "pirate": 3, "over": 3}

# What is thought where a task has no steps of its own.
THOUGHTS = {
    "story": "They want a small story. I need a hero, a place, some trouble and a good end.", "code": "They want Python. A short function will do.",
    "json": "They want JSON, so I write nothing else.", "talk": "A friendly word is enough.", "unknown": "I have not learned this, so I say so.",
    "stranger": "This name is not one of the people I know.",
}


def draw_turn(rng, held_out=False):
    return rng.choices(_GENERATORS, _WEIGHTS)[0](rng, held_out)


def thoughts_of(turn):
    return turn.thinking or THOUGHTS.get(turn.kind) or f"I know this. {turn.answer}"


def answered(turn, answer, thinks=False):
    """The two messages of a turn."""
    said = {"role": "assistant", "content": answer}
    if thinks:
        said["reasoning_content"] = thoughts_of(turn)
    return [{"role": "user", "content": turn.question}, said]


def _draw_style(rng):
    name = rng.choices(list(SHARES), list(SHARES.values()))[0]
    if name == "none":
        return "", lambda t: t.answer
    if name == "neutral":
        return rng.choice(NEUTRAL), lambda t: t.answer
    texts, style = STYLES[name]
    return rng.choice(texts), style


def _next_turn(rng, before):
    if before is not None and rng.random() < 0.25:
        for follow_up in FOLLOW_UPS:
            if (turn := follow_up(rng, False, before)) is not None:
                return turn
    return draw_turn(rng)


class Row:
    """A conversation that grows while it fits."""

    def __init__(self, encode, budget):
        self.encode, self.budget = encode, budget
        self.ids, self.said = [], []  # said[i]: the model is to learn ids[i]

    def append(self, pieces):
        """Adds all pieces, or none: False."""
        encoded = [(self.encode(text), said) for text, said in pieces]
        if len(self.ids) + sum(len(ids) for ids, _ in encoded) > self.budget:
            return False
        for ids, said in encoded:
            self.ids += ids
            self.said += [said] * len(ids)
        return True


def _pieces(messages, thinks=False):
    return [p for m in messages for p in message_pieces(m, thinks and m["role"] == "assistant")]


def _fill_with_turns(rng, row):
    system, style = _draw_style(rng)
    row.append([system_piece(system)])
    before, misses = None, 0
    # Thoughts end a conversation (later turns would not see them: the template forgets them), so in
    # a long row they come late.
    first, last = (0.0, 0.6) if row.budget <= 256 else (0.6, 0.95)
    thinks_after = row.budget * rng.uniform(first, last) if rng.random() < 0.35 else row.budget
    while misses < 2:  # a long turn that does not fit may be followed by a short one that does
        turn = _next_turn(rng, before)
        if (answer := style(turn)) is None:
            continue
        thinks = len(row.ids) >= thinks_after
        if not row.append(_pieces(answered(turn, answer, thinks), thinks)):
            misses += 1
            continue
        if thinks:
            return
        before = turn


def _fill_with_tools(rng, row):
    tools, messages, result, answer, _ = tool_use.call(rng, False)
    if not row.append([system_piece(rng.choice(NEUTRAL) if rng.random() < 0.3 else "", tools)]):
        return
    while True:
        if rng.random() < 0.35:  # a question that needs no tool
            turn = draw_turn(rng)
            fits = row.append(_pieces(answered(turn, turn.answer)))
        else:
            result_message = {"role": "tool", "content": json.dumps(result)}
            fits = row.append(_pieces(messages + [result_message, {"role": "assistant", "content": answer}]))
            offered = {t["function"]["name"] for t in tools}
            while True:  # the next call, of a function that is on offer
                _, messages, result, answer, _ = tool_use.call(rng, False)
                if messages[1]["tool_calls"][0]["function"]["name"] in offered:
                    break
        if not fits:
            return


def training_row(rng, encode, budget):
    """(ids, said) of a conversation of at most `budget` tokens."""
    while True:
        row = Row(encode, budget)
        (_fill_with_tools if budget >= 256 and rng.random() < 0.08 else _fill_with_turns)(rng, row)
        if any(row.said):
            return row.ids, row.said
