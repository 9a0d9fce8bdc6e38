# Sums, differences, products and quotients: asked in many ways, always answered "a + b = c.", so
# that the answer can be checked letter by letter.
# SPDX-License-Identifier: Apache-2.0
from .split import Phrasings, Turn, draw_operands, phrases

ASK = [
    "What is {e}?", "what is {e}", "What's {e}?", "How much is {e}?", "how much is {e}", "Calculate {e}.",
    "Please calculate {e}.", "calculate {e}", "Compute {e}.", "Compute {e} for me.", "Tell me {e}.",
    "Can you work out {e}?", "Can you tell me {e}?", "Work out {e}.", "Work out {e} for me, please.", "Solve {e}.",
    "What does {e} make?", "Do you know what {e} is?", "I would like to know {e}.", "Find {e}.", "{e}", "{e}?",
    "Hi, what is {e}?", "Quick question: what is {e}?", "Could you compute {e}?", "Give me {e}.", "What do you get for {e}?",
    "I need {e}.", "Evaluate {e}.", "Say what {e} is.",
]
FORMS = {
    "+": ["{a} + {b}", "{a}+{b}", "{a} plus {b}", "the sum of {a} and {b}", "{a} added to {b}", "{a} and {b} together"],
    "-": ["{a} - {b}", "{a}-{b}", "{a} minus {b}", "{a} take away {b}", "{b} subtracted from {a}", "{a} less {b}",
          "the difference between {a} and {b}"],
    "x": ["{a} x {b}", "{a}*{b}", "{a} * {b}", "{a} times {b}", "the product of {a} and {b}", "{a} multiplied by {b}"],
    "/": ["{a} / {b}", "{a}/{b}", "{a} divided by {b}", "the quotient of {a} and {b}"],
}
NAMES = {"+": "add", "-": "subtract", "x": "multiply", "/": "divide"}
PHRASINGS = {
    op: Phrasings(NAMES[op], [a.replace("{e}", f) for f in forms for a in ASK]) for op, forms in FORMS.items()
}
APPLY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "x": lambda a, b: a * b, "/": lambda a, b: a // b}


def operand_name(op, a, b):
    """3 + 5 and 5 + 3 are the same sum, so both are in the same split."""
    return f"{min(a, b)} {max(a, b)}" if op == "+" else f"{a} {b}"


def draw_pair(rng, op, digits=2):
    top = 10**digits - 1
    if op == "x":
        return rng.randint(0, 12), rng.randint(0, 12)
    if op == "/":
        b = rng.randint(1, 12)
        return b * rng.randint(0, 12), b
    small = rng.random() < 0.15
    a, b = (rng.randint(0, 20 if small else top) for _ in "ab")
    if op == "-" and a < b and rng.random() < 0.85:
        a, b = b, a
    return a, b


def split_space(op):
    """Tables are too small to keep operands back: their split is by phrasing alone."""
    return NAMES[op] if op in "+-" else None


def training_pair(rng, op, held_out=False):
    """Two numbers of the right split, for every task in which a sum or a difference occurs."""
    (a, b), _ = draw_operands(
        rng, held_out, split_space(op), lambda r: ((p := draw_pair(r, op)), operand_name(op, *p)))
    return a, b


def equation(op, a, b):
    return f"{a} {op} {b} = {APPLY[op](a, b)}"


def _columns(a, b, sign):
    """Digit by digit from the right, with the carry said aloud."""
    lines, carry, place = [], 0, ["ones", "tens", "hundreds", "thousands"]
    xs, ys = str(a)[::-1], str(b)[::-1]
    for i in range(max(len(xs), len(ys))):
        x, y = (int(s[i]) if i < len(s) else 0 for s in (xs, ys))
        total = x + sign * (y + carry)
        digit, new_carry = total % 10, int(total > 9 or total < 0)
        word = ("carry" if sign > 0 else "borrow") + f" {new_carry}" if new_carry else "nothing over"
        more = f" {'+' if sign > 0 else '-'} {carry}" if carry else ""
        lines.append(f"{place[i]}: {x} {'+' if sign > 0 else '-'} {y}{more} gives {digit}, {word}.")
        carry = new_carry
    if carry and sign > 0:
        lines.append(f"{place[len(lines)]}: {carry}.")
    return "\n".join(lines)


def working(op, a, b):
    """The steps as thinking shows them."""
    result = f"So {equation(op, a, b)}."
    if op == "+":
        return f"I add {a} and {b}.\n{_columns(a, b, 1)}\n{result}"
    if op == "-" and a >= b:
        return f"I take {b} from {a}.\n{_columns(a, b, -1)}\n{result}"
    if op == "-":
        return f"{b} is more than {a}, so the result is below zero.\n{b} - {a} = {b - a}.\n{result}"
    if op == "x":
        return f"This is in the table of {b}.\n{result}"
    return f"{b} x {a // b} = {a}.\n{result}"


def _turn(kind, op, a, b, name, template):
    result = APPLY[op](a, b)
    return Turn(kind, template.format(a=a, b=b), equation(op, a, b) + ".", template,
                name if split_space(op) else "", str(result), result, working(op, a, b))


def calculation(rng, held_out, op):
    (a, b), name = draw_operands(
        rng, held_out, split_space(op), lambda r: ((p := draw_pair(r, op)), operand_name(op, *p)))
    template = PHRASINGS[op].pick(rng, held_out)
    if op == "-" and a < b and "difference" in template:
        template = template.replace("the difference between {a} and {b}", "{a} minus {b}")
        if template not in (PHRASINGS[op].held_out if held_out else PHRASINGS[op].train):
            return calculation(rng, held_out, op)
    return _turn(NAMES[op], op, a, b, name, template)


def add(rng, held_out):
    return calculation(rng, held_out, "+")


def subtract(rng, held_out):
    return calculation(rng, held_out, "-")


def multiply(rng, held_out):
    return calculation(rng, held_out, "x")


def divide(rng, held_out):
    return calculation(rng, held_out, "/")


def three_digits(rng, held_out):
    op = rng.choice("+-")
    (a, b), name = draw_operands(
        rng, held_out, NAMES[op], lambda r: ((p := draw_pair(r, op, 3)), operand_name(op, *p)))
    if a < b:
        a, b = b, a
        if op == "-":
            return three_digits(rng, held_out)
    return _turn("three_digits", op, a, b, name, PHRASINGS[op].pick(rng, held_out))


PEOPLE = ["Anna", "Ben", "Carla", "David", "Emma", "Finn", "Greta", "Hugo", "Ida", "Jack", "Lena", "Max", "Nora", "Paul"]
THINGS = ["apples", "books", "coins", "stones", "cards", "eggs", "shells", "stamps", "marbles", "pears", "buttons", "nuts"]
GAIN = Phrasings("word_gain", phrases(
    "{n} has {a} {t} and ", ["buys", "finds", "gets", "wins", "is given"], " {b} more. ",
    ["How many {t} does {n} have now?", "How many {t} is that?", "How many {t} are there in all?"]))
LOSS = Phrasings("word_loss", phrases(
    "{n} has {a} {t} and ", ["gives away", "loses", "sells", "drops"], " {b} of them. ",
    ["How many {t} does {n} have left?", "How many {t} are left?", "How many {t} remain?"]))
GROUPS = Phrasings("word_groups", phrases(
    ["There are {a} boxes with {b} {t} in each.", "{n} fills {a} bags with {b} {t} each.", "{n} has {a} boxes of {b} {t}."],
    " ", ["How many {t} is that?", "How many {t} are there in all?", "How many {t} are there?"]))


def word_problem(rng, held_out):
    op, phrasings = rng.choice([("+", GAIN), ("-", LOSS), ("x", GROUPS)])
    while True:
        a, b = training_pair(rng, op, held_out)
        if a >= b or op != "-":
            break
    slots = {"n": rng.choice(PEOPLE), "t": rng.choice(THINGS)}
    template = phrasings.pick(rng, held_out)
    result = APPLY[op](a, b)
    return Turn("word_problem", template.format(a=a, b=b, **slots), f"{equation(op, a, b)}, so there are {result} {slots['t']}.",
                template, operand_name(op, a, b) if split_space(op) else "", str(result), result, working(op, a, b))


COMPARE = Phrasings("compare", phrases(
    ["Which is {w}", "Which number is {w}", "Tell me which is {w}", "What is {w}"], [", ", ": "], "{a} or {b}", ["?", ""]))
PARITY = Phrasings("parity", phrases(["Is {a} even or odd", "Is {a} odd or even", "Is the number {a} even or odd",
                                      "Tell me if {a} is even or odd"], ["?", "", "."]))


def compare(rng, held_out):
    if rng.random() < 0.4:
        a = rng.randint(0, 99)
        template, word = PARITY.pick(rng, held_out), ["even", "odd"][a % 2]
        return Turn("compare", template.format(a=a), f"{a} is {word}.", template, short=word, value=word)
    a, b = rng.sample(range(100), 2)
    word = rng.choice(["larger", "smaller", "bigger"])
    best, other = (min(a, b), max(a, b)) if word == "smaller" else (max(a, b), min(a, b))
    template = COMPARE.pick(rng, held_out)
    return Turn("compare", template.format(a=a, b=b, w=word), f"{best} is {word} than {other}.", template,
                short=str(best), value=best)


FOLLOW = {
    "+": Phrasings("follow_add", phrases(["Add {b} to that", "And {b} more", "Now add {b}", "Plus {b}"], [".", "", "?"])),
    "-": Phrasings("follow_subtract", phrases(["Take {b} away from that", "And {b} less", "Now subtract {b}", "Minus {b}"], [".", "", "?"])),
}


def follow_up(rng, held_out, before):
    """A question about the number of the turn before; None where there is no such number."""
    if before.kind not in ("add", "subtract", "multiply", "word_problem") or not 0 <= before.value <= 99:
        return None
    op, a = rng.choice("+-"), before.value

    def make(r):
        b = r.randint(0, 99)
        return b, operand_name(op, a, b)

    b, name = draw_operands(rng, held_out, NAMES[op], make)
    template = FOLLOW[op].pick(rng, held_out)
    return _turn(NAMES[op], op, a, b, name, template)
