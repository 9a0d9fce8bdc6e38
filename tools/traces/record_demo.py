#!/usr/bin/env python3
"""Records the routing of the demo model while it answers its evaluation set.

    tools/traces/record_demo.py SLUICE OUT.slrt

A chat with `sluice run --trace-out`: one question in four of tests/data/demo/questions.jsonl and
after every sixth of them a story, each as a conversation of its own. Greedy, and the CPU's
arithmetic is exact, so every machine records the same bytes.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONE_IN = 4
STORY_EVERY = 6
HEROES = ["an owl named Luna in the valley", "a fox named Max by the river",
          "a mouse named Pia in the garden", "a bear named Otto in the forest",
          "a cat named Mia on the hill", "a duck named Tom at the lake",
          "a hare named Lea in the meadow", "a goat named Ben in the mountains",
          "a frog named Ida at the pond", "a dog named Rex in the village",
          "a crow named Kai in the old tower", "a snail named Eva under the tree"]


def questions():
    """What the users of the evaluation set ask; those without a system message, on one line."""
    for line in (ROOT / "tests/data/demo/questions.jsonl").read_text(encoding="utf-8").splitlines():
        asked = re.match(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", json.loads(line)["prompt"])
        if asked:
            yield asked[1]


def chat():
    heroes = iter(HEROES)
    for i, question in enumerate(list(questions())[::ONE_IN]):
        yield question
        yield "/reset"
        if i % STORY_EVERY == 0:
            hero = next(heroes, None)
            if hero:
                yield f"Tell me a story about {hero}."
                yield "/reset"


def main(sluice, out):
    # From the root, since the trace names the model as the command line does.
    command = [os.path.abspath(sluice), "run", "-m", "models/demo-attn.gguf", "--lines", "--temp", "0",
               "--trace-out", os.path.abspath(out)]
    subprocess.run(command, input="\n".join(chat()) + "\n", text=True, check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
