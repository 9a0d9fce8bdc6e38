# chat_format.py against chat_template.jinja, rendered by @huggingface/jinja and, where they are
# there, by Jinja2 and by sluice's own engine.
#   python3 tools/demo_model/chat_format_test.py [--oracle DIR] [--render PROGRAM]
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from chat_format import conversation_pieces, prompt
from corpus import tool_use
from corpus.conversation import NEUTRAL, answered, draw_turn

HERE = pathlib.Path(__file__).parent
TEMPLATE = (HERE / "chat_template.jinja").read_text()
RENDER = """
const { Template } = require("@huggingface/jinja");
const { template, inputs } = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(inputs.map((variables) => new Template(template).render(variables))));
"""
options = None


def conversations():
    """[(messages, tools, enable_thinking or None)]"""
    rng = random.Random(1)
    made = []
    for i in range(120):
        messages = [{"role": "system", "content": rng.choice(NEUTRAL)}] if rng.random() < 0.4 else []
        tools = None
        if i % 4 == 0:
            tools, calls, result, answer, _ = tool_use.call(rng, False)
            messages += calls + [{"role": "tool", "content": json.dumps(result)}, {"role": "assistant", "content": answer}]
        for _ in range(rng.randint(0, 3)):
            turn = draw_turn(rng)
            messages += answered(turn, turn.answer)
        last = draw_turn(rng)
        made.append((messages + [answered(last, last.answer)[0]], tools, rng.choice([None, False, True])))
        made.append((messages + answered(last, last.answer, thinks=rng.random() < 0.5), tools, None))
    return made


def cases():
    """[(variables of the template, text that chat_format makes)]"""
    out = []
    for messages, tools, thinks in conversations():
        asks = messages[-1]["role"] == "user"
        variables = {"messages": messages, "tools": tools, "add_generation_prompt": asks}
        if thinks is not None:
            variables["enable_thinking"] = thinks
        whole = prompt(messages, tools, bool(thinks)) if asks else "".join(t for t, _ in conversation_pieces(messages, tools))
        out.append((variables, whole))
    return out


class TheTemplate(unittest.TestCase):
    def check(self, rendered):
        self.assertEqual(len(rendered), len(cases()))
        for (variables, expected), got in zip(cases(), rendered):
            self.assertEqual(got, expected, variables)

    def test_huggingface_jinja_renders_what_the_corpus_has(self):
        if not (options.oracle / "node").exists():
            self.skipTest(f"no reference in {options.oracle}: run tests/parity/install.sh")
        job = json.dumps({"template": TEMPLATE, "inputs": [v for v, _ in cases()]})
        done = subprocess.run([options.oracle / "node", "-e", RENDER], input=job, text=True, capture_output=True, cwd=options.oracle, check=True)
        self.check(json.loads(done.stdout))

    def test_jinja2_renders_what_the_corpus_has(self):
        try:
            import jinja2.sandbox
        except ImportError:
            self.skipTest("no Jinja2 here")
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)  # as transformers has it
        template = environment.from_string(TEMPLATE)
        self.check([template.render(**v) for v, _ in cases()])

    def test_sluice_renders_what_the_corpus_has(self):
        if options.render is None:
            self.skipTest("no --render PROGRAM")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            places = list(range(len(cases())))
            json.dump({"now": 0, "variables": [v for v, _ in cases()], "templates": [{"text": TEMPLATE, "inputs": places}]}, f)
            f.flush()
            done = subprocess.run([options.render, f.name], text=True, capture_output=True, check=True)
        self.check([a["output"] for a in json.loads(done.stdout.splitlines()[0])])

    def test_thoughts_of_earlier_turns_are_forgotten_and_the_block_stays(self):
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        self.assertTrue(prompt(turns + turns[:1]).startswith("".join(t for t, _ in conversation_pieces(turns))))

    def test_all_is_learned_but_that_no_thoughts_follow(self):
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        pieces = conversation_pieces(turns)
        unlearned = [i for i, (_, said) in enumerate(pieces) if said is None]
        self.assertEqual([pieces[i][0] for i in unlearned], ["\n\n"])
        self.assertTrue(pieces[unlearned[0] - 1][0].endswith("<think>"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", type=pathlib.Path, default=HERE / "../../build/release/parity/oracle")
    parser.add_argument("--render")
    options, rest = parser.parse_known_args()
    options.oracle = options.oracle.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
