# The tokenizer: what it keeps, what it splits, and that it cuts as the qwen2 form says.
#   python3 tools/demo_model/tokenizer_test.py
# SPDX-License-Identifier: Apache-2.0
import random
import unittest

import tokenizer
from chat_format import conversation_pieces
from corpus.conversation import training_row


class TheTokenizer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.t = tokenizer.train(n_rows=800)

    def test_text_comes_back_as_it_was(self):
        for text in ["12 + 30 = 42.", "<|im_start|>user\nHi  there!\n\n  x<|im_end|>\n", '{"a": [1, 2]}', "don't\t\tstop\r\n", "Zyx~"]:
            self.assertEqual(self.t.decode(self.t.encode(text)), text)

    def test_every_digit_is_one_token(self):
        ids = self.t.encode("1234567 x 90")
        self.assertEqual([self.t.decode([i]) for i in ids], [*"1234567", " x", " ", "9", "0"])
        self.assertFalse([t for t in self.t.tokens if sum(c.isdigit() for c in t) > 1 and not t.startswith("[PAD")])

    def test_pieces_are_those_of_the_qwen2_form(self):
        cases = {"I'll go": ["I", "'ll", " go"], "a  b": ["a", " ", " b"], "x = {\n": ["x", " =", " {\n"], "a\n\n  b": ["a", "\n\n", " ", " b"],
                 "(hi)": ["(hi", ")"], "end.  ": ["end", ".", "  "]}
        for text, pieces in cases.items():
            self.assertEqual(tokenizer.PIECES.findall(text), pieces)

    def test_special_tokens_are_one_token_of_the_right_kind(self):
        for text in tokenizer.SPECIAL:
            self.assertEqual(len(self.t.encode(text)), 1)
        kinds = dict(zip(self.t.tokens, self.t.kinds()))
        self.assertEqual((kinds["<|im_end|>"], kinds["<think>"], kinds["a"]), (3, 4, 1))

    def test_the_vocabulary_has_the_size_that_the_models_have(self):
        self.assertEqual(len(self.t.tokens), tokenizer.VOCABULARY)
        self.assertEqual(len(self.t.kinds()), tokenizer.VOCABULARY)

    def test_pieces_of_a_conversation_encode_as_its_whole_text(self):
        """So that a model trained on pieces meets the same tokens in a rendered prompt."""
        for seed in range(200):
            texts = []
            training_row(random.Random(seed), lambda text: texts.append(text) or [0] * (len(text) // 4), 512)
            apart = [i for text in texts for i in self.t.encode(text)]
            self.assertEqual(apart, self.t.encode("".join(texts)), "".join(texts))

    def test_other_alphabets_are_refused(self):
        with self.assertRaises(ValueError):
            self.t.encode("Zürich")

    def test_conversations_use_known_pieces_only(self):
        pieces = conversation_pieces([{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}])
        self.assertEqual("".join(p for p, _ in pieces),
                         "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nA<|im_end|>\n")
        self.assertEqual([p for p, said in pieces if said], ["A<|im_end|>"])


if __name__ == "__main__":
    unittest.main()
