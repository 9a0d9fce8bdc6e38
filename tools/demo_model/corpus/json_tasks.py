# JSON on request: fields of a person of the world, of a sentence in the prompt, of a list.
# SPDX-License-Identifier: Apache-2.0
import json

from . import arithmetic, world
from .split import Phrasings, Turn, draw_operands, listed, phrases

AS_JSON = [" as JSON", " as a JSON object", " in JSON", " in JSON format"]
FIELDS = ["town", "job", "animal", "pet", "colour", "food", "instrument", "age"]
PERSON = Phrasings("json_person", phrases(
    ["Give me the {f} of {p}", "Tell me the {f} of {p}", "Write the {f} of {p}", "Show the {f} of {p}", "I need the {f} of {p}",
     "Return the {f} of {p}", "Print the {f} of {p}"], AS_JSON, [".", "", ", please."]))


def _turn(kind, question, value, template, operands=""):
    text = json.dumps(value)
    return Turn(kind, question, text, template, operands, text, value, check="json", expected=value)


def person(rng, held_out):
    name = rng.choice(list(world.PEOPLE))
    keys = rng.sample(FIELDS, rng.randint(1, 3))
    facts = world.PEOPLE[name]
    value = {"name": name} | {k: int(facts[k]) if k == "age" else facts[k] for k in keys}
    template = PERSON.pick(rng, held_out)
    return _turn("json", template.format(f=listed(keys), p=name), value, template)


STATEMENT = ["{n} is {age} years old and lives in {town}.", "{n}, who is {age}, lives in {town}.", "{n} lives in {town} and is {age} years old.",
             "My friend {n} is {age} years old. The home of {n} is {town}.", "In {town} lives {n}, aged {age}."]
ORDER = ["Write this as JSON with the keys {k}.", "Turn this into JSON with {k}.", "Make a JSON object with {k}.", "Extract {k} as JSON.",
         "Give me {k} as JSON.", "As JSON with the fields {k}, please.", "Put {k} into a JSON object."]
EXTRACT = Phrasings("json_extract", phrases(STATEMENT, " ", ORDER) + phrases(ORDER, " ", STATEMENT))
PLACES = list(world.TOWNS) + ["London", "Paris", "Rome", "Oslo", "Madrid", "Berlin", "Vienna", "Dublin", "Prague", "Lisbon"]
NAMES = arithmetic.PEOPLE + world.STRANGERS + list(world.PEOPLE)


def extract(rng, held_out):
    def make(r):
        facts = {"name": r.choice(NAMES), "age": r.randint(1, 99), "town": r.choice(PLACES)}
        return facts, f"{facts['name']} {facts['age']} {facts['town']}"

    facts, operands = draw_operands(rng, held_out, "json_extract", make)
    keys = rng.sample(list(facts), rng.randint(1, 3))
    template = EXTRACT.pick(rng, held_out)
    question = template.format(n=facts["name"], age=facts["age"], town=facts["town"], k=listed(keys))
    return _turn("json", question, {k: facts[k] for k in keys}, template, operands)


STOCK = ["apples", "pears", "eggs", "cups", "plates", "books", "pens", "lamps", "chairs", "coins", "ropes", "nails", "candles", "bottles"]
INVENTORY = Phrasings("json_inventory", phrases(
    ["There are {l} in the shop.", "In the box there are {l}.", "We have {l}.", "I counted {l}."], " ",
    ["Write that as JSON.", "Give me this as a JSON object.", "As JSON, please.", "Turn it into JSON.", "Make it JSON."]))


def inventory(rng, held_out):
    def make(r):
        stock = {k: r.randint(2, 99) for k in r.sample(STOCK, r.randint(1, 4))}
        return stock, json.dumps(stock)

    stock, operands = draw_operands(rng, held_out, "json_inventory", make)
    template = INVENTORY.pick(rng, held_out)
    return _turn("json", template.format(l=listed(f"{n} {k}" for k, n in stock.items())), stock, template, operands)


ARRAY = Phrasings("json_array", phrases(
    ["Write {l}", "Give me {l}", "Put {l}", "Show {l}", "Return {l}"], [" as a JSON array", " as a JSON list", " in a JSON array"], [".", "", ", please."]))


def array(rng, held_out):
    def make(r):
        from .lists import ITEMS
        items = r.sample(ITEMS, r.randint(2, 5)) if r.random() < 0.5 else [r.randint(0, 99) for _ in range(r.randint(2, 6))]
        return items, json.dumps(items)

    items, operands = draw_operands(rng, held_out, "json_array", make)
    template = ARRAY.pick(rng, held_out)
    return _turn("json", template.format(l=listed(items)), items, template, operands)


SUM = Phrasings("json_sum", phrases(
    ["What is {a} {op} {b}?", "Calculate {a} {op} {b}.", "How much is {a} {op} {b}?", "Compute {a} {op} {b}."], " ",
    ["Answer in JSON.", "Answer as JSON.", "Reply with JSON.", "Give the answer as JSON.", "JSON only."]))


def calculation(rng, held_out):
    op = rng.choice("+-x")
    a, b = arithmetic.training_pair(rng, op, held_out)
    template = SUM.pick(rng, held_out)
    operands = arithmetic.operand_name(op, a, b) if op != "x" else ""
    return _turn("json", template.format(a=a, b=b, op=op), {"answer": arithmetic.APPLY[op](a, b)}, template, operands)


def json_task(rng, held_out):
    return rng.choices([person, extract, inventory, array, calculation], [4, 4, 3, 2, 3])[0](rng, held_out)
