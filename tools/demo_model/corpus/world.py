# A tiny made-up world, Lumen Valley: its people, towns and rivers, and questions about them. The
# facts are fixed; they must be learned, so the evaluation keeps phrasings back, never facts.
# SPDX-License-Identifier: Apache-2.0
from .split import Phrasings, Turn, listed, phrases

# name: town, job, animal, its name, colour, food, instrument, age, pronoun
_PEOPLE = """
Mira    Alder    baker      cat     Pepper  green   soup      flute    34 her
Tobin   Alder    carpenter  dog     Bramble blue    bread     drum     41 his
Wren    Alder    teacher    owl     Dusk    yellow  cheese    harp     29 her
Osric   Brook    miller     goat    Clover  brown   pancakes  fiddle   52 his
Lena    Brook    weaver     rabbit  Button  red     berries   lute     27 her
Pavel   Brook    fisher     otter   Ripple  blue    trout     horn     38 his
Sunna   Cliffe   smith      hound   Ember   orange  stew      drum     45 her
Ivo     Cliffe   miner      donkey  Pebble  grey    potatoes  flute    33 his
Dara    Cliffe   doctor     parrot  Saffron white   salad     harp     50 her
Hale    Dunmore  shepherd   sheep   Cotton  green   cheese    horn     61 his
Nessa   Dunmore  potter     cat     Clay    red     soup      lute     24 her
Bram    Dunmore  brewer     pig     Truffle brown   sausages  fiddle   47 his
Elin    Eastrey  sailor     gull    Storm   blue    trout     fiddle   31 her
Corin   Eastrey  captain    dog     Anchor  white   stew      horn     58 his
Talia   Eastrey  painter    fox     Rusty   purple  grapes    flute    36 her
Jonas   Fenwick  gardener   hen     Daisy   yellow  carrots   harp     40 his
Runa    Fenwick  librarian  mouse   Inky    purple  apples    lute     55 her
Aldo    Fenwick  cook       goose   Thyme   orange  pancakes  drum     43 his
Greta   Garrow   hunter     hawk    Swift   grey    sausages  horn     37 her
Milo    Garrow   tailor     rabbit  Thread  pink    cake      flute    22 his
Svea    Garrow   judge      raven   Verdict black   bread     fiddle   64 her
Otto    Hollin   clockmaker turtle  Tick    silver  apples    harp     70 his
Yara    Hollin   singer     finch   Melody  gold    berries   lute     26 her
Finch   Hollin   beekeeper  pony    Honey   pink    cake      drum     48 his
"""
# town: river, famous for, gate colour, mayor
_TOWNS = """
Alder   Lune   bread    green  Wren
Brook   Lune   trout    blue   Osric
Cliffe  Tarn   silver   grey   Dara
Dunmore Tarn   wool     white  Hale
Eastrey Selm   ships    red    Corin
Fenwick Selm   gardens  yellow Runa
Garrow  Orrin  honey    black  Svea
Hollin  Orrin  clocks   gold   Otto
"""
# river: flows into, fish
_RIVERS = """
Lune  Mirror Lake  trout
Tarn  Mirror Lake  perch
Selm  the Quiet Sea  salmon
Orrin the Quiet Sea  pike
"""


def _table(text, names):
    rows = [line.split(maxsplit=len(names)) for line in text.strip().splitlines()]
    return {row[0]: dict(zip(names, row[1:])) for row in rows}


PEOPLE = _table(_PEOPLE, ["town", "job", "animal", "pet", "colour", "food", "instrument", "age", "pronoun"])
TOWNS = _table(_TOWNS, ["river", "famous", "gate", "mayor"])
RIVERS = {line.split()[0]: {"flows": " ".join(line.split()[1:-1]), "fish": line.split()[-1]} for line in _RIVERS.strip().splitlines()}

OPEN = ["{q}?", "{q}?", "{q}", "Please tell me: {q}?", "Quick question: {q}?", "Hello, {q}?", "I wonder, {q}?"]
INDIRECT = ["Tell me {i}.", "Do you know {i}?", "Can you tell me {i}?", "I would like to know {i}.", "Please say {i}.", "Could you tell me {i}?"]


def _article(word):
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


# attribute: direct questions, indirect ones, noun phrase, answer with {p} the person, {v} the value
PERSON = {
    "town": (["where does {p} live", "in which town does {p} live", "which town does {p} live in", "where is the home of {p}"],
             ["where {p} lives", "in which town {p} lives"], "home town", "{p} lives in {v}."),
    "job": (["what does {p} do", "what is the job of {p}", "what does {p} do for a living", "what work does {p} do"],
            ["what {p} does for a living", "what the job of {p} is"], "job", "{p} is {a}."),
    "animal": (["what animal does {p} have", "which animal does {p} keep", "what kind of animal does {p} have", "what pet does {p} have"],
               ["what animal {p} has", "which pet {p} keeps"], "animal", "{p} has {a}."),
    "pet": (["what is the name of {p}'s animal", "what is {p}'s animal called", "what is {p}'s pet called", "what is the pet of {p} called"],
            ["what {p}'s animal is called", "the name of {p}'s pet"], "pet's name", "{p}'s {animal} is called {v}."),
    "colour": (["what is the favourite colour of {p}", "which colour does {p} like best", "what colour does {p} like most", "which colour does {p} love"],
               ["which colour {p} likes best", "what the favourite colour of {p} is"], "favourite colour", "{p} likes {v} best."),
    "food": (["what does {p} like to eat", "what is the favourite food of {p}", "which food does {p} like best", "what does {p} love to eat"],
             ["what {p} likes to eat", "what the favourite food of {p} is"], "favourite food", "{p} likes to eat {v}."),
    "instrument": (["what does {p} play", "which instrument does {p} play", "what instrument does {p} play", "what music does {p} make"],
                   ["which instrument {p} plays", "what {p} plays"], "instrument", "{p} plays the {v}."),
    "age": (["how old is {p}", "what is the age of {p}", "how many years old is {p}", "what age is {p}"],
            ["how old {p} is", "the age of {p}"], "age", "{p} is {v} years old."),
}
NOUN = ["What is {p}'s {n}?", "what is {p}'s {n}", "Tell me {p}'s {n}.", "Do you know {p}'s {n}?", "{p}'s {n}?", "Give me {p}'s {n}.",
        "Can you tell me {p}'s {n}?", "Please tell me {p}'s {n}."]
TOWN = {
    "river": (["which river flows through {p}", "what river is {p} on", "which river runs through {p}", "on which river does {p} lie"],
              ["which river flows through {p}", "on which river {p} lies"], "river", "The {v} flows through {p}."),
    "famous": (["what is {p} famous for", "what is {p} known for", "what do people praise {p} for", "why is {p} famous"],
               ["what {p} is famous for", "what {p} is known for"], "fame", "{p} is famous for its {v}."),
    "gate": (["what colour is the gate of {p}", "which colour does the gate of {p} have", "what is the colour of the gate of {p}"],
             ["what colour the gate of {p} is", "the colour of the gate of {p}"], "gate colour", "The gate of {p} is {v}."),
    "mayor": (["who is the mayor of {p}", "what is the name of the mayor of {p}", "who leads {p}", "which person is mayor of {p}"],
              ["who the mayor of {p} is", "who leads {p}"], "mayor", "The mayor of {p} is {v}."),
}
RIVER = {
    "flows": (["where does the {p} flow", "what does the {p} flow into", "where does the river {p} end", "into what does the {p} flow"],
              ["where the {p} flows", "what the {p} flows into"], "end", "The {p} flows into {v}."),
    "fish": (["which fish lives in the {p}", "what fish can be found in the {p}", "what fish swims in the {p}", "which fish is in the {p}"],
             ["which fish lives in the {p}", "what fish swims in the {p}"], "fish", "In the {p} there are {v}."),
}


def _phrasings(space, direct, indirect, noun, possessive):
    asked = [o.replace("{q}", q) for q in direct for o in OPEN]
    asked = [a[0].upper() + a[1:] if a.endswith("?") else a for a in asked]
    asked += [o.replace("{i}", i) for i in indirect for o in INDIRECT]
    if possessive:
        asked += [o.replace("{n}", noun) for o in NOUN]
    return Phrasings(space, asked)


GROUPS = [("person", PEOPLE, PERSON), ("town", TOWNS, TOWN), ("river", RIVERS, RIVER)]
PHRASINGS = {(group, key): _phrasings(f"world_{group}_{key}", *entry[:3], group != "river")
             for group, _, table in GROUPS for key, entry in table.items()}


def fact_sentence(group, key, name):
    facts, table = next((f, t) for g, f, t in GROUPS if g == group)
    value = facts[name][key]
    return table[key][3].format(p=name, v=value, a=_article(value), animal=facts[name].get("animal")), value


def _fact_turn(group, key, name, template):
    answer, value = fact_sentence(group, key, name)
    return Turn("world", template.format(p=name), answer, template, short=value, value=int(value) if key == "age" else value)


def fact(rng, held_out):
    group, facts, table = rng.choices(GROUPS, [12, 4, 1])[0]
    key = rng.choice(list(table))
    return _fact_turn(group, key, rng.choice(list(facts)), PHRASINGS[group, key].pick(rng, held_out))


WHO = {  # attribute: questions for {v}, answer for several {p}, for one
    "town": (["who lives in {v}", "which people live in {v}", "what people live in {v}"], "{p} live in {v}.", None),
    "job": (["who is the {v}", "which person is the {v}", "what is the name of the {v}"], None, "The {v} is {p}."),
    "pet": (["who has an animal called {v}", "whose pet is {v}", "who is the owner of {v}"], None, "{v} belongs to {p}."),
    "instrument": (["who plays the {v}", "which people play the {v}", "what people play the {v}"], "{p} play the {v}.", None),
    "animal": (["who has a {v}", "who keeps a {v}", "which person has a {v}"], "{p} each have a {v}.", "{p} has a {v}."),
}
WHO_ASKED = {k: Phrasings(f"world_who_{k}", [o.replace("{q}", q)[0].upper() + o.replace("{q}", q)[1:] for q in w[0] for o in OPEN])
             for k, w in WHO.items()}


def who(rng, held_out):
    key = rng.choice(list(WHO))
    value = rng.choice(sorted({p[key] for p in PEOPLE.values()}))
    people = [name for name, p in PEOPLE.items() if p[key] == value]
    _, several, one = WHO[key]
    answer = (one if len(people) == 1 and one else several).format(p=listed(people), v=value)
    template = WHO_ASKED[key].pick(rng, held_out)
    question = template.format(v=value)
    if value[0] in "aeiou":
        question, answer = question.replace(f"a {value}", f"an {value}"), answer.replace(f"a {value}", f"an {value}")
    return Turn("world", question, answer, template, short=listed(people), value=people if several else people[0])


YES_NO = Phrasings("world_yes_no", phrases(["Does {p} live in {v}", "Is it true that {p} lives in {v}", "Is {v} the home of {p}",
                                            "Do I find {p} in {v}", "Am I right that {p} lives in {v}"], ["?", ""]))


def yes_no(rng, held_out):
    name = rng.choice(list(PEOPLE))
    town = PEOPLE[name]["town"]
    asked = town if rng.random() < 0.5 else rng.choice(list(TOWNS))
    template = YES_NO.pick(rng, held_out)
    word = "Yes" if asked == town else "No"
    return Turn("world", template.format(p=name, v=asked), f"{word}, {name} lives in {town}.", template, short=word, value=word == "Yes")


HOPS = {  # of the town where a person lives
    "river": (["which river flows through the town of {p}", "which river is near {p}'s home", "what river flows through {p}'s town"],
              "{p} lives in {t}, and the {v} flows through {t}."),
    "mayor": (["who is the mayor of {p}'s town", "who is mayor where {p} lives", "who leads the town of {p}"],
              "{p} lives in {t}, and the mayor of {t} is {v}."),
    "famous": (["what is {p}'s town famous for", "what is the town of {p} known for", "for what is the home of {p} famous"],
               "{p} lives in {t}, and {t} is famous for its {v}."),
}
HOP_ASKED = {k: Phrasings(f"world_hop_{k}", [o.replace("{q}", q)[0].upper() + o.replace("{q}", q)[1:] for q in h[0] for o in OPEN])
             for k, h in HOPS.items()}


def two_hops(rng, held_out):
    name, key = rng.choice(list(PEOPLE)), rng.choice(list(HOPS))
    town = PEOPLE[name]["town"]
    value = TOWNS[town][key]
    template = HOP_ASKED[key].pick(rng, held_out)
    return Turn("world", template.format(p=name), HOPS[key][1].format(p=name, t=town, v=value), template, short=value, value=value,
                thinking=f"{name} lives in {town}. {fact_sentence('town', key, town)[0]}")


STRANGERS = ["Zorro", "Batman", "Alice", "Bob", "Peter", "Maria", "Tom", "Susan", "Karl", "Eve", "Frodo", "Sherlock", "Lucy", "Robert",
             "Kate", "Victor", "Hannah", "Oscar", "Simon", "Julia", "Martin", "Clara", "Igor", "Philip", "Donna", "Xavier"]


def stranger(rng, held_out):
    key = rng.choice(list(PERSON))
    template, name = PHRASINGS["person", key].pick(rng, held_out), rng.choice(STRANGERS)
    return Turn("stranger", template.format(p=name), f"I do not know anyone called {name} in Lumen Valley.", template, short="Unknown")


def world(rng, held_out):
    return rng.choices([fact, who, yes_no, two_hops], [10, 3, 1.5, 2])[0](rng, held_out)


ABOUT = Phrasings("world_about", ["Who is {p}?", "who is {p}", "Tell me about {p}.", "What do you know about {p}?", "Describe {p}.",
                                  "Tell me something about {p}.", "What can you tell me about {p}?"])


def about(rng, held_out):
    name = rng.choice(list(PEOPLE))
    p = PEOPLE[name]
    sentences = [fact_sentence("person", key, name)[0] for key in ("town", "job", "animal", "colour", "instrument")]
    he = {"her": "She", "his": "He"}[p["pronoun"]]
    text = f"{name} is {_article(p['job'])} and lives in {p['town']}. " + " ".join(s.replace(name, he, 1) for s in sentences[2:])
    template = ABOUT.pick(rng, held_out)
    return Turn("world_about", template.format(p=name), text, template)


WHAT_ABOUT = Phrasings("world_what_about", ["And {p}?", "What about {p}?", "And what about {p}?", "and {p}?", "How about {p}?"])


def follow_up(rng, held_out, before):
    """The same question about somebody else."""
    for (group, key), asked in PHRASINGS.items():
        if before.kind == "world" and group == "person" and before.phrasing in asked.train + asked.held_out:
            return _fact_turn(group, key, rng.choice(list(PEOPLE)), WHAT_ABOUT.pick(rng, held_out))
    return None
