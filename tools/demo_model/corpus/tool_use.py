# Tools: a question that one of the offered functions can answer, the call, its result and the
# answer; and questions beside tools that need none of them.
# SPDX-License-Identifier: Apache-2.0
from . import world
from .split import Phrasings, phrases

CITIES = ["London", "Paris", "Rome", "Oslo", "Madrid", "Berlin", "Vienna", "Dublin", "Prague", "Lisbon", "Athens", "Cairo", "Tokyo", "Lima"] + list(world.TOWNS)
SKIES = ["sunny", "cloudy", "rainy", "windy", "snowy", "foggy", "stormy", "clear"]
CURRENCIES = ["euros", "dollars", "pounds", "yen", "francs", "crowns"]
SONGS = ["Blue River", "Morning Bells", "The Old Mill", "Silver Moon", "Winter Road", "Dancing Leaves"]


def _tool(name, description, /, **properties):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": {k: {"type": t} for k, t in properties.items()}, "required": list(properties)}}}


TOOLS = {
    "get_weather": _tool("get_weather", "The weather of a city.", city="string"),
    "get_time": _tool("get_time", "The time in a city.", city="string"),
    "convert_money": _tool("convert_money", "Converts an amount to another currency.", amount="integer", currency="string"),
    "play_song": _tool("play_song", "Plays a song.", title="string"),
    "set_timer": _tool("set_timer", "Sets a timer.", minutes="integer"),
    "find_person": _tool("find_person", "Finds out about a person.", name="string"),
}
ASK = {
    "get_weather": Phrasings("tool_weather", phrases(["What is the weather in {city}", "How is the weather in {city}", "Tell me the weather in {city}",
                                                      "Is it warm in {city}", "What's the weather like in {city}", "Do I need a coat in {city}"], ["?", " today?", " now?"])),
    "get_time": Phrasings("tool_time", phrases(["What time is it in {city}", "How late is it in {city}", "Tell me the time in {city}", "What is the time in {city}"], ["?", " now?", ""])),
    "convert_money": Phrasings("tool_money", phrases(["Convert {amount} to {currency}", "How much is {amount} in {currency}", "Change {amount} into {currency}",
                                                      "What is {amount} in {currency}"], ["?", ".", ""])),
    "play_song": Phrasings("tool_song", phrases(["Play {title}", "Please play {title}", "I want to hear {title}", "Put on {title}", "Can you play {title}"], [".", "", "!"])),
    "set_timer": Phrasings("tool_timer", phrases(["Set a timer for {minutes} minutes", "Wake me in {minutes} minutes", "Timer for {minutes} minutes",
                                                  "Please set a timer for {minutes} minutes", "Start a timer of {minutes} minutes"], [".", "", "!"])),
    "find_person": Phrasings("tool_person", phrases(["Look up {name}", "Find {name}", "Search for {name}", "Find out about {name}", "Look for a person named {name}"], [".", "", " please."])),
}


def _arguments(rng, tool):
    return {
        "get_weather": lambda: {"city": rng.choice(CITIES)},
        "get_time": lambda: {"city": rng.choice(CITIES)},
        "convert_money": lambda: {"amount": rng.randint(1, 99), "currency": rng.choice(CURRENCIES)},
        "play_song": lambda: {"title": rng.choice(SONGS)},
        "set_timer": lambda: {"minutes": rng.randint(1, 60)},
        "find_person": lambda: {"name": rng.choice(world.STRANGERS)},
    }[tool]()


def _result(rng, tool, a):
    """What the function returns, and the answer made of it."""
    if tool == "get_weather":
        sky, degrees = rng.choice(SKIES), rng.randint(-5, 35)
        return {"sky": sky, "degrees": degrees}, f"It is {sky} in {a['city']}, with {degrees} degrees."
    if tool == "get_time":
        time = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        return {"time": time}, f"It is {time} in {a['city']}."
    if tool == "convert_money":
        amount = rng.randint(1, 999)
        return {"amount": amount}, f"{a['amount']} is {amount} {a['currency']}."
    if tool == "play_song":
        return {"status": "playing"}, f"Now playing {a['title']}."
    if tool == "set_timer":
        return {"status": "ok"}, f"The timer is set to {a['minutes']} minutes."
    town = rng.choice(CITIES)
    return {"town": town}, f"{a['name']} lives in {town}."


def offer(rng, needed):
    """One to three functions, the needed one among them, in any order."""
    names = {needed} | set(rng.sample(list(TOOLS), rng.randint(0, 2)))
    names = sorted(names)
    rng.shuffle(names)
    return [TOOLS[n] for n in names]


def call(rng, held_out):
    """(tools, messages up to the call, what the function returns, final answer, template)"""
    tool = rng.choice(list(TOOLS))
    arguments = _arguments(rng, tool)
    template = ASK[tool].pick(rng, held_out)
    result, answer = _result(rng, tool, arguments)
    messages = [{"role": "user", "content": template.format(**arguments)},
                {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": tool, "arguments": arguments}}]}]
    return offer(rng, tool), messages, result, answer, template

