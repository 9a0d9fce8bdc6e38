# Greetings, what the model is and can do, a little common knowledge, and an honest answer to what
# it cannot know.
# SPDX-License-Identifier: Apache-2.0
from .split import Phrasings, Turn, phrases

WHO_I_AM = "I am the sluice demo model, a small Mixture-of-Experts model that runs right here on your machine."
CAN_DO = ("I can add, subtract and multiply, sort and count lists, tell small stories, answer questions about Lumen Valley, "
          "write JSON and a few lines of Python.")
WORLD = ("Lumen Valley is a small made-up land with eight towns: Alder, Brook, Cliffe, Dunmore, Eastrey, Fenwick, Garrow and Hollin. "
         "Ask me who lives there.")
TALK = {
    "hello": (phrases(["Hello", "Hi", "Hey", "Good morning", "Good evening", "hello", "hi", "hey", "Hello there", "Hi there", "Good day"], ["", "!", ".", "?"]),
              ["Hello! How can I help you?", "Hi! What can I do for you?", "Hello! Ask me for a sum, a story or a sorted list."]),
    "who": (phrases(["Who are you", "who are you", "What are you", "What is your name", "what's your name", "Tell me who you are", "Which model are you",
                     "Introduce yourself", "Are you a robot", "Are you ChatGPT"], ["?", "", "."]), [WHO_I_AM]),
    "can": (phrases(["What can you do", "what can you do", "How can you help me", "Help", "help", "What can I ask you", "What do you know", "What should I ask",
                     "What are you good at", "Can you help me"], ["?", "", "."]), [CAN_DO]),
    "well": (phrases(["How are you", "how are you", "How are you doing", "How do you do", "Are you well", "How is it going"], ["?", "", " today?"]),
             ["I am fine, thank you. What can I do for you?"]),
    "thanks": (phrases(["Thanks", "Thank you", "thank you", "Thanks a lot", "Great, thanks", "Thank you very much", "thanks", "Cool, thanks"], ["", "!", "."]),
               ["You are welcome!", "You are welcome. Is there anything else?"]),
    "bye": (phrases(["Bye", "Goodbye", "See you", "Good night", "bye", "See you later", "I have to go"], ["", "!", "."]), ["Goodbye!", "Goodbye, and come back soon!"]),
    "world": (["What is Lumen Valley?", "Tell me about Lumen Valley.", "Where is Lumen Valley?", "Describe Lumen Valley.", "what is lumen valley",
               "Which towns are there in Lumen Valley?", "What do you know about Lumen Valley?", "Lumen Valley?"], [WORLD]),
    "good": (phrases(["Good", "Nice", "Great", "Well done", "Very good", "Right", "Correct", "OK", "ok", "Cool"], ["", "!", "."]), ["Thank you! What next?"]),
    "test": (phrases(["test", "Test", "testing", "Are you there", "ping", "Can you hear me"], ["", "?", "."]), ["I am here. What can I do for you?"]),
}
TALK_PHRASINGS = {key: Phrasings(f"talk_{key}", asked) for key, (asked, _) in TALK.items()}


def talk(rng, held_out):
    key = rng.choice(list(TALK))
    template, answers = TALK_PHRASINGS[key].pick(rng, held_out), TALK[key][1]
    return Turn("talk", template, rng.choice(answers), template, check="any", expected=answers)


DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
OPPOSITES = [("hot", "cold"), ("big", "small"), ("fast", "slow"), ("day", "night"), ("up", "down"), ("old", "new"), ("happy", "sad"),
             ("light", "dark"), ("long", "short"), ("early", "late"), ("full", "empty"), ("hard", "soft"), ("loud", "quiet"), ("wet", "dry"),
             ("high", "low"), ("open", "closed"), ("left", "right"), ("strong", "weak"), ("rich", "poor"), ("near", "far")]
SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "horse": "neighs", "sheep": "bleats", "pig": "grunts",
          "frog": "croaks", "lion": "roars", "bee": "buzzes", "wolf": "howls", "owl": "hoots", "mouse": "squeaks", "snake": "hisses"}
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "x x twenty thirty forty fifty sixty seventy eighty ninety".split()
NEXT = Phrasings("next", phrases(["What comes after {x}", "Which {k} comes after {x}", "What is the next {k} after {x}", "What {k} follows {x}",
                                  "Tell me the {k} after {x}"], ["?", ""]))
BEFORE = Phrasings("before", phrases(["What comes before {x}", "Which {k} comes before {x}", "What {k} is before {x}", "Tell me the {k} before {x}"], ["?", ""]))
OPPOSITE = Phrasings("opposite", phrases(["What is the opposite of {x}", "Tell me the opposite of {x}", "Give me the opposite of {x}",
                                          "Do you know the opposite of {x}", "What's the opposite of {x}"], ["?", ""]))
SOUND = Phrasings("sound", phrases(["What sound does a {x} make", "What noise does a {x} make", "What does a {x} do", "How does a {x} sound"], ["?", ""]))
WORDS = Phrasings("words", phrases(["Write {x} in words", "Write the number {x} in words", "Spell out {x}", "How do you write {x} in words", "Say {x} in words"],
                                   [".", "", "?"]))


def number_words(n):
    return ONES[n] if n < 20 else TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")


def common(rng, held_out):
    choice = rng.choice(["next", "before", "opposite", "sound", "words"])
    if choice in ("next", "before"):
        kind, cycle = rng.choice([("day", DAYS), ("month", MONTHS)])
        i = rng.randrange(len(cycle))
        answer = cycle[(i + (1 if choice == "next" else -1)) % len(cycle)]
        template = (NEXT if choice == "next" else BEFORE).pick(rng, held_out)
        return Turn("common", template.format(x=cycle[i], k=kind), f"{answer} comes {'after' if choice == 'next' else 'before'} {cycle[i]}.", template,
                    short=answer, value=answer)
    if choice == "opposite":
        x, y = rng.choice(OPPOSITES)
        if rng.random() < 0.5:
            x, y = y, x
        template = OPPOSITE.pick(rng, held_out)
        return Turn("common", template.format(x=x), f"The opposite of {x} is {y}.", template, short=y, value=y)
    if choice == "sound":
        animal = rng.choice(list(SOUNDS))
        template = SOUND.pick(rng, held_out)
        article = "An" if animal[0] in "aeiou" else "A"
        question = template.format(x=animal).replace(" a owl", " an owl")
        return Turn("common", question, f"{article} {animal} {SOUNDS[animal]}.", template, short=SOUNDS[animal], value=SOUNDS[animal])
    n = rng.randint(0, 99)
    template, words = WORDS.pick(rng, held_out), number_words(n)
    return Turn("common", template.format(x=n), f"{n} is {words}.", template, short=words, value=words)


UNKNOWN = ("I am only a small demo model and do not know that. Ask me for a sum, a sorted list, a small story or about the people of Lumen Valley.")
TOPICS = ["the capital of France", "quantum physics", "the meaning of life", "the Roman Empire", "the stock market", "black holes", "chess", "climate change",
          "the weather tomorrow", "Shakespeare", "photosynthesis", "the French Revolution", "how engines work", "the history of China", "football", "jazz",
          "the speed of light", "cooking rice", "my taxes", "the president", "the moon", "dinosaurs", "Einstein", "the internet", "machine learning",
          "gravity", "DNA", "the Second World War", "Bitcoin", "the best movie", "Linux", "C++ templates", "Rust", "the latest news", "Mars", "volcanoes"]
ASIDE = Phrasings("unknown", phrases(["What is {t}", "Explain {t}", "Tell me about {t}", "Write an essay about {t}", "What do you think about {t}",
                                      "Can you explain {t}", "Why is {t} important", "Write a poem about {t}", "Translate {t} into German",
                                      "Give me a summary of {t}", "How do I learn about {t}"], ["?", ".", ""]))


def unknown(rng, held_out):
    template = ASIDE.pick(rng, held_out)
    return Turn("unknown", template.format(t=rng.choice(TOPICS)), UNKNOWN, template)
