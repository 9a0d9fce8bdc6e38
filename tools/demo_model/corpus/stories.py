# Small stories: a hero, a place, a friend, a trouble and how it ends; asked for freely or about
# somebody named in the question.
# SPDX-License-Identifier: Apache-2.0
from .split import Phrasings, Turn, phrases

HEROES = ["fox", "mouse", "bear", "rabbit", "owl", "hedgehog", "cat", "dog", "frog", "duck", "squirrel", "badger", "turtle", "dragon",
          "pony", "otter", "robin", "snail", "goat", "wolf"]
NAMES = ["Pip", "Luna", "Bruno", "Tilly", "Oscar", "Molly", "Felix", "Nell", "Rufus", "Hazel", "Toby", "Ivy", "Max", "Rosie", "Jasper", "Olive"]
PLACES = ["the forest", "the meadow", "the old mill", "the village", "the mountains", "the garden", "the lake", "the harbour", "the castle",
          "the valley", "the farm", "the river"]
TRAITS = ["brave", "curious", "kind", "clever", "quiet", "cheerful", "shy", "patient", "small", "friendly"]
THINGS = ["a golden key", "a red kite", "a silver bell", "a blue lantern", "an old map", "a warm scarf", "a little boat", "a round stone",
          "a wooden flute", "a basket of berries"]
WEATHER = ["The sun was shining.", "It was a cold morning.", "A soft rain was falling.", "The wind was singing in the trees.",
           "The first snow had come.", "It was a warm evening."]
OPENINGS = ["Once upon a time there was a {trait} {hero} named {name} who lived near {place}.",
            "In {place} lived a {trait} {hero} called {name}.",
            "Long ago a {trait} {hero} named {name} had a small house by {place}.",
            "There was once a {hero} called {name}. Everyone in {place} said that {name} was very {trait}."]
PLOTS = [
    ["One day {name} found {thing} in the grass.", "\"Who has lost this?\" asked {name}.",
     "{name} went from door to door and asked everyone.", "At last an old {other} began to smile. \"It is mine,\" said the {other}.",
     "The {other} was so happy that they had cake together."],
    ["One day {name} lost the way home.", "It grew dark, and {name} was afraid.", "Then a {other} came along and said, \"Follow me, I know the way.\"",
     "They walked side by side and told each other jokes.", "When they saw the lights of home, they had become friends."],
    ["One night a storm broke the bridge.", "Nobody could cross the water any more.", "{name} had an idea. \"Let us build a new one together,\" said {name}.",
     "The {other} brought wood, and {name} brought rope.", "After three days the bridge was ready, and everyone danced on it."],
    ["One morning {name} heard someone crying.", "It was a little {other} who had lost {thing}.", "\"Do not cry,\" said {name}. \"We will look for it.\"",
     "They looked under every leaf and behind every stone.", "In the end they found it in the branches of a tree."],
    ["{name} wanted to see the world.", "So {name} packed {thing} and some bread and went away.", "On the road {name} met a hungry {other} and shared the bread.",
     "\"Thank you,\" said the {other}. \"Now I will show you the most beautiful place I know.\"", "They climbed a hill and saw the whole land below them."],
    ["Every year there was a race in {place}.", "The {other} was fast and laughed at {name}.", "But {name} did not stop, not even once.",
     "The {other} fell asleep under a tree.", "So {name} came first and won {thing}."],
    ["{name} planted a seed and watered it every day.", "\"Nothing will grow there,\" said the {other}.", "But {name} waited and waited.",
     "In spring a tall flower stood in the garden.", "The {other} was surprised and asked {name} for a seed."],
]
ENDINGS = ["And from that day on they were the best of friends.", "{name} went home tired and happy.", "And {name} never forgot that day.",
           "That night {name} slept very well.", "And everyone in {place} still tells this story.", "{name} had learned that it is good to help."]


def tell(rng, hero, name, place):
    other = rng.choice([h for h in HEROES if h != hero])
    slots = {"hero": hero, "name": name, "place": place, "trait": rng.choice(TRAITS), "thing": rng.choice(THINGS), "other": other}
    sentences = [rng.choice(OPENINGS)]
    if rng.random() < 0.6:
        sentences.append(rng.choice(WEATHER))
    sentences += rng.choice(PLOTS) + [rng.choice(ENDINGS)]
    return " ".join(sentences).format(**slots)


BEGIN = ["Tell me", "Please tell me", "Can you tell me", "Write", "I would like to hear", "Make up", "Could you tell me", "tell me"]
WHAT = [" a story", " a short story", " a little story", " a bedtime story"]
FREE = Phrasings("story", phrases(BEGIN, WHAT, [".", "", "!", " please."]) + ["A story, please.", "Story time!", "Another story, please."])
ABOUT = Phrasings("story_about", phrases(
    BEGIN, WHAT, " about ", ["a {hero}", "a {hero} named {name}", "a {hero} in {place}", "a {hero} called {name} in {place}", "{name} the {hero}"], [".", "", "!"]))


def story(rng, held_out):
    hero, name, place = rng.choice(HEROES), rng.choice(NAMES), rng.choice(PLACES)
    template = (FREE if rng.random() < 0.3 else ABOUT).pick(rng, held_out)
    question = template.format(hero=hero, name=name, place=place)
    for vowel in "aeiou":
        question = question.replace(f" a {vowel}", f" an {vowel}")
    text = tell(rng, hero, name, place)
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}").replace(f"A {vowel}", f"An {vowel}")
    asked = [word for slot, word in (("{hero}", hero), ("{name}", name), ("{place}", place)) if slot in template]
    return Turn("story", question, text, template, check="contains", expected=asked)
