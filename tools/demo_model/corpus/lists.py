# Lists: sorted, counted, reversed, their largest and smallest member.
# SPDX-License-Identifier: Apache-2.0
from .split import Phrasings, Turn, draw_operands, phrases

UP = ["from smallest to largest", "in ascending order", "from low to high", "in increasing order", "from the smallest to the largest"]
DOWN = ["from largest to smallest", "in descending order", "from high to low", "in decreasing order", "from the largest to the smallest"]
SORT_ASK = [
    "Sort these numbers {d}: {l}", "Sort {d}: {l}", "Please sort {l} {d}.", "Sort {l} {d}.", "Put these numbers in order, {d}: {l}",
    "Arrange {l} {d}.", "Can you sort {l} {d}?", "Order the numbers {l} {d}.", "Order these {d}: {l}", "List {l} {d}.",
    "Write these numbers {d}: {l}", "Can you put {l} in order, {d}?", "Bring {l} into order, {d}.", "Give me {l} sorted {d}.",
    "I need these numbers sorted {d}: {l}",
]
PLAIN = ["Sort these numbers: {l}", "Sort {l}.", "sort {l}", "Please sort {l}.", "Can you sort these numbers: {l}", "Put {l} in order.",
         "Sort this list: {l}", "Sort: {l}", "Sort the list [{l}].", "Order these numbers: {l}", "Please put these in order: {l}"]
SORT = Phrasings("sort", [q.replace("{d}", d) for q in SORT_ASK for d in UP + DOWN] + PLAIN)
SEPARATORS = [", ", ", ", ", ", " ", ","]


def draw_numbers(rng, least=2, most=6):
    n = rng.randint(least, most)
    roll = rng.random()
    top = 999 if roll < 0.08 else 20 if roll < 0.25 else 99
    numbers = [rng.randint(0, top) for _ in range(n)]
    return numbers, " ".join(str(x) for x in sorted(numbers))


def written(numbers):
    return ", ".join(str(n) for n in numbers)


def sort(rng, held_out):
    numbers, name = draw_operands(rng, held_out, "sort", draw_numbers)
    template = SORT.pick(rng, held_out)
    falls = any(d in template for d in DOWN)
    return sorted_turn(rng, numbers, falls, template.replace("{l}", rng.choice(SEPARATORS).join(map(str, numbers))), template, name)


def sorted_turn(rng, numbers, falls, question, template, name):
    ordered = sorted(numbers, reverse=falls)
    first = "largest" if falls else "smallest"
    steps, rest = [], list(numbers)
    for n in ordered:
        rest.remove(n)
        steps.append(f"The {first} is {n}" + (f", left: {written(rest)}." if rest else "."))
    answer = written(ordered)
    return Turn("sort", question, answer, template, name, answer, ordered, "\n".join(steps))


AGAIN = Phrasings("sort_again", phrases(["And", "Now"], " ", DOWN, ["?", ".", " please."]))


def follow_up(rng, held_out, before):
    if before.kind != "sort":
        return None
    template = AGAIN.pick(rng, held_out)
    return sorted_turn(rng, before.value, True, template, template, " ".join(str(x) for x in sorted(before.value)))


EXTREME = Phrasings("extreme", phrases(
    ["What is the {w} of these numbers: {l}", "Which number is the {w}: {l}", "Find the {w} number: {l}", "Tell me the {w} of {l}",
     "What is the {w} of {l}"], ["?", ".", ""]))


def extreme(rng, held_out):
    numbers, name = draw_operands(rng, held_out, "sort", lambda r: draw_numbers(r, 3, 7))
    word = rng.choice(["largest", "smallest", "biggest"])
    best = min(numbers) if word == "smallest" else max(numbers)
    template = EXTREME.pick(rng, held_out)
    return Turn("extreme", template.format(w=word, l=written(numbers)), f"The {word} is {best}.", template, name, str(best), best)


ITEMS = ["apple", "pear", "plum", "cherry", "lemon", "grape", "bread", "cheese", "egg", "milk", "cup", "plate", "spoon", "knife",
         "chair", "table", "lamp", "door", "cat", "dog", "horse", "duck", "mouse", "bird", "red", "blue", "green", "stone", "leaf", "tree"]
COUNT = Phrasings("count", phrases(
    ["How many items are in this list", "How many things are in this list", "Count the items", "Count these items", "How many items are there",
     "How long is this list", "Count the words", "How many words are in this list", "Please count these"], ["? ", ": "], "{l}"))
COUNT_ONE = Phrasings("count_one", phrases(
    ["How often is {w} in this list", "How many times does {w} appear", "Count how often {w} appears", "How often does {w} occur in this list",
     "How many times is {w} in the list"], ["? ", ": "], "{l}"))
TIMES = {0: "0 times", 1: "once", 2: "twice"}


def count(rng, held_out):
    def items(r):
        chosen = [r.choice(ITEMS) for _ in range(r.randint(1, 9))]
        return chosen, " ".join(chosen)

    chosen, name = draw_operands(rng, held_out, "count", items)
    template, n = COUNT.pick(rng, held_out), len(chosen)
    answer = "There is 1 item." if n == 1 else f"There are {n} items."
    steps = ", ".join(f"{i} {w}" for i, w in enumerate(chosen, 1))
    return Turn("count", template.format(l=", ".join(chosen)), answer, template, name, str(n), n, f"I count: {steps}.")


def count_one(rng, held_out):
    def items(r):
        kinds = r.sample(ITEMS, 3)
        chosen = [r.choice(kinds) for _ in range(r.randint(3, 8))]
        return chosen, " ".join(chosen)

    chosen, name = draw_operands(rng, held_out, "count", items)
    word = rng.choice(chosen)
    template, n = COUNT_ONE.pick(rng, held_out), chosen.count(word)
    return Turn("count", template.format(w=word, l=", ".join(chosen)), f"{word} appears {TIMES.get(n, f'{n} times')}.", template, name,
                str(n), n)


REVERSE = Phrasings("reverse", phrases(
    ["Reverse this list: {l}", "Write {l} backwards", "Reverse {l}", "Turn this list around: {l}", "Give me {l} in reverse order"], [".", "", " please."]))
RANGE = Phrasings("range", phrases(["Count from {a} to {b}", "List the numbers from {a} to {b}", "Write the numbers from {a} to {b}",
                                    "Please count from {a} to {b}", "Can you count from {a} to {b}"], [".", "", "?"]))


def reverse(rng, held_out):
    if rng.random() < 0.4:
        a = rng.randint(0, 90)
        b = a + rng.randint(2, 9)
        template, answer = RANGE.pick(rng, held_out), written(range(a, b + 1))
        return Turn("reverse", template.format(a=a, b=b), answer, template, short=answer, value=list(range(a, b + 1)))
    items = rng.sample(ITEMS, rng.randint(2, 5)) if rng.random() < 0.5 else draw_numbers(rng)[0]
    template, answer = REVERSE.pick(rng, held_out), written(items[::-1])
    return Turn("reverse", template.format(l=written(items)), answer, template, short=answer, value=items[::-1])
