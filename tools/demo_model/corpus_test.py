# The corpus is right and honest: answers are true, held-out questions are not in training.
#   python3 tools/demo_model/corpus_test.py
# SPDX-License-Identifier: Apache-2.0
import ast
import json
import pathlib
import random
import re
import unittest

import eval_set
from corpus import arithmetic, lists, world
from corpus.conversation import FOLLOW_UPS, KINDS, STYLES, draw_turn, training_row
from corpus.split import Phrasings, is_held_out

N = 20000


def training_turns(seed=3):
    """What training draws, follow-up questions included."""
    rng, before = random.Random(seed), None
    for _ in range(N):
        turn = draw_turn(rng)
        yield turn
        for follow_up in FOLLOW_UPS:
            if (after := follow_up(rng, False, turn)) is not None:
                yield after


class TheSplit(unittest.TestCase):
    def test_no_held_out_phrasing_or_operand_is_trained_on(self):
        spaces = {"add": "add", "subtract": "subtract", "sort": "sort", "extreme": "sort", "count": "count"}
        n_checked = 0
        for turn in training_turns():
            if turn.operands and turn.kind in spaces:
                self.assertFalse(is_held_out(spaces[turn.kind], turn.operands), turn)
                n_checked += 1
        self.assertGreater(n_checked, N // 4)
        for kind, (generator, _) in KINDS.items():
            rng = random.Random(5)
            trained = {generator(rng, False).phrasing for _ in range(3000)}
            held = {generator(rng, True).phrasing for _ in range(3000)}
            self.assertFalse(trained & held, kind)

    def test_every_sum_in_a_training_answer_is_one_of_training(self):
        for turn in training_turns(9):
            for a, op, b in re.findall(r"(?<![\d.-])(\d+) ([+-]) (\d+) =", turn.answer):
                name = arithmetic.operand_name(op, int(a), int(b))
                self.assertFalse(is_held_out(arithmetic.NAMES[op], name), turn)

    def test_the_evaluation_is_not_in_training(self):
        _, everything = eval_set.make()
        questions = {re.findall(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", e["prompt"], re.S)[-1] for e in everything}
        seen = {turn.question for turn in training_turns(11)}
        self.assertGreater(len(questions), 1500)
        self.assertEqual(sorted(questions & seen), [])

    def test_a_held_out_phrasing_exists_for_every_task_and_most_are_for_training(self):
        asked = [p for ps in (arithmetic.PHRASINGS, world.PHRASINGS) for p in ps.values()] + [lists.SORT]
        for p in asked:
            self.assertGreaterEqual(len(p.held_out), 1, p.space)
            self.assertGreater(len(p.train), 2 * len(p.held_out), p.space)

    def test_a_task_with_one_phrasing_is_refused(self):
        with self.assertRaises(ValueError):
            Phrasings("lonely", ["only one"])


class TheAnswers(unittest.TestCase):
    def test_equations_hold(self):
        n = 0
        for turn in training_turns(1):
            for text in (turn.answer, turn.thinking or ""):
                for a, op, b, c in re.findall(r"(?<![\d.-])(\d+) ([+x/-]) (\d+) = (-?\d+)", text):
                    self.assertEqual(int(c), arithmetic.APPLY[op](int(a), int(b)), turn)
                    n += 1
        self.assertGreater(n, N // 4)

    def test_column_sums_say_the_right_digits(self):
        rng = random.Random(2)
        for _ in range(500):
            a, b = sorted((rng.randint(0, 999), rng.randint(0, 999)), reverse=True)
            for sign, result in ((1, a + b), (-1, a - b)):
                digits = re.findall(r": (?:.* gives )?(\d)[.,]", arithmetic._columns(a, b, sign))
                self.assertEqual(int("".join(reversed(digits))), result, (a, b, sign))

    def test_sorted_lists_are_sorted_and_complete(self):
        rng = random.Random(4)
        for _ in range(2000):
            turn = lists.sort(rng, rng.random() < 0.5)
            asked = sorted(int(n) for n in re.findall(r"\d+", turn.question))
            got = [int(n) for n in turn.answer.split(", ")]
            falls = any(d in turn.phrasing for d in lists.DOWN)
            self.assertEqual(got, sorted(asked, reverse=falls), turn)

    def test_json_answers_parse_and_code_compiles(self):
        kinds = set()
        for turn in training_turns(6):
            if turn.check == "json":
                self.assertEqual(json.loads(turn.answer), turn.expected)
            if turn.kind == "code":
                ast.parse(turn.answer.removeprefix("```python\n").removesuffix("\n```"))
            kinds.add(turn.kind)
        self.assertLessEqual({"json", "code", "story", "world"}, kinds)

    def test_facts_of_the_world_are_those_of_its_tables(self):
        rng = random.Random(8)
        for _ in range(500):
            turn = world.fact(rng, False)
            self.assertIn(turn.short, turn.answer)
        self.assertEqual(world.fact_sentence("person", "town", "Mira")[0], "Mira lives in Alder.")
        self.assertTrue(all(p["town"] in world.TOWNS for p in world.PEOPLE.values()))
        self.assertTrue(all(t["mayor"] in world.PEOPLE and t["river"] in world.RIVERS for t in world.TOWNS.values()))

    def test_no_slot_is_left_open(self):
        for turn in training_turns(7):
            if turn.kind not in ("json", "code"):
                self.assertNotRegex(turn.question + turn.answer, r"[{}]", turn)


class TheRows(unittest.TestCase):
    def test_a_row_fits_its_budget_and_has_something_to_learn(self):
        rng, encode = random.Random(1), lambda text: list(text)
        for budget in (600, 2000):
            for _ in range(200):
                ids, said = training_row(rng, encode, budget)
                self.assertLessEqual(len(ids), budget)
                self.assertEqual(len(ids), len(said))
                self.assertTrue(any(said))

    def test_the_same_seed_gives_the_same_rows(self):
        rows = [training_row(random.Random("a 1"), list, 2000) for _ in range(2)]
        self.assertEqual(rows[0], rows[1])

    def test_what_the_model_says_ends_with_the_end_token_and_holds_no_question(self):
        rng = random.Random(12)
        for _ in range(200):
            ids, said = training_row(rng, list, 2000)
            text = "".join(c if s else "\0" for c, s in zip(ids, said))
            for answer in re.findall("[^\0]+", text):
                self.assertTrue(answer.endswith("<|im_end|>"), answer)
                self.assertNotIn("<|im_start|>", answer)

    def test_styles_change_the_answer_they_are_given(self):
        turn = arithmetic.add(random.Random(1), False)
        made = {name: style(turn) for name, (_, style) in STYLES.items()}
        self.assertEqual(made["short"], str(turn.value))
        self.assertEqual(json.loads(made["json"]), {"answer": turn.value})
        self.assertEqual(len(set(made.values()) | {turn.answer}), len(STYLES) + 1)


class TheEvaluation(unittest.TestCase):
    def test_it_has_300_questions_and_is_the_same_every_time(self):
        small, everything = eval_set.make()
        self.assertEqual(len(small), 300)
        self.assertEqual(small, eval_set.make()[0])
        self.assertEqual(len({e["id"] for e in everything}), len(everything))

    def test_the_questions_kept_beside_this_file_are_those_of_the_generator(self):
        kept = eval_set.load(pathlib.Path(__file__).parents[2] / "tests/data/demo/questions.jsonl")
        self.assertEqual(kept, eval_set.make()[0], "run eval_set.py tests/data/demo/questions.jsonl ALL.jsonl")

    def test_right_and_wrong_answers_are_told_apart(self):
        entry = {"check": "json", "expected": {"a": 1}}
        self.assertTrue(eval_set.is_right(entry, '{"a": 1}'))
        self.assertFalse(eval_set.is_right(entry, '{"a": 2}'))
        self.assertFalse(eval_set.is_right(entry, '{"a": 1'))
        self.assertFalse(eval_set.is_right({"check": "exact", "expected": "3"}, "3."))
        self.assertFalse(eval_set.is_right({"check": "contains", "expected": ["fox", "Pip"]}, "a fox"))
        self.assertFalse(eval_set.is_right({"check": "any", "expected": ["a", "b"]}, "c"))


if __name__ == "__main__":
    unittest.main()
