#!/usr/bin/env python3
"""Gaps in texts, as editors have them filled: /infill, and `suffix` of the other endpoints.

    infill_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import os
import struct
import tempfile
import unittest

import serving
from serving import Server

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/demo-attn.gguf")
HEAD_BYTES = 24  # of a GGUF file: magic, version, number of tensors, number of keys
ALIGNMENT = 32
KEYS = {"fim_pre_token_id": 11, "fim_suf_token_id": 12, "fim_mid_token_id": 13}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def write_model(path):
    """The demo model with the keys of a model that knows gaps, put before all others."""
    with open(DEMO, "rb") as file:
        data = file.read()
    magic, version, n_tensors, n_keys = struct.unpack("<4sIQQ", data[:HEAD_BYTES])
    added = b"".join(text("tokenizer.ggml." + name) + struct.pack("<II", 4, id) for name, id in KEYS.items())
    # Tensors lie at multiples of the alignment, so what is added must be one.
    padded = added + text("test.padding") + struct.pack("<I", 8)
    padded += text("x" * (-(len(padded) + 8) % ALIGNMENT))
    with open(path, "wb") as file:
        file.write(struct.pack("<4sIQQ", magic, version, n_tensors, n_keys + len(KEYS) + 1) + padded + data[HEAD_BYTES:])


class InfillTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "gap.gguf")
        write_model(cls.path)
        cls.server = Server("-m", cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def expected(self, prefix, suffix, n):
        """What the model goes on with after the tokens of the gap."""
        def tokens(part):
            return self.server.post("/tokenize", {"content": part, "parse_special": False})["tokens"]
        prompt = [11, *tokens(prefix), 12, *tokens(suffix), 13]
        answer = self.server.post("/v1/completions", {"prompt": prompt, "max_tokens": n, "temperature": 0})
        return answer["choices"][0]["text"], len(prompt)

    def test_infill_is_the_answer_to_the_gap(self):
        content, n_prompt = self.expected("What is ", " + 25?", 8)
        answer = self.server.post("/infill", {
            "input_prefix": "What is ", "input_suffix": " + 25?", "n_predict": 8, "temperature": 0,
            "samplers": ["top_k", "infill"], "cache_prompt": True, "t_max_predict_ms": 500})
        self.assertEqual(answer["content"], content)
        self.assertEqual((answer["stop"], answer["truncated"]), (True, False))
        self.assertEqual(answer["tokens_evaluated"], n_prompt)
        self.assertEqual(answer["tokens_predicted"], answer["timings"]["predicted_n"])
        self.assertIn(answer["stop_type"], ("limit", "eos"))

    def test_stream(self):
        body = {"input_prefix": "What is ", "input_suffix": " + 25?", "n_predict": 8, "temperature": 0}
        whole = self.server.post("/infill", body)
        events = self.server.events("/infill", {**body, "stream": True})
        self.assertEqual("".join(event["content"] for event in events), whole["content"])
        self.assertEqual([event["stop"] for event in events], [False] * (len(events) - 1) + [True])
        self.assertEqual(events[-1]["tokens_predicted"], whole["tokens_predicted"])

    def test_extra_that_does_not_fit_is_told(self):
        extra = [{"filename": f"{i}.txt", "text": "1 2 3 4 5 6 7 8 " * 40} for i in range(100)]
        answer = self.server.post("/infill", {"input_prefix": "a", "input_extra": extra, "n_predict": 1})
        self.assertTrue(answer["truncated"])
        self.assertGreater(answer["input_extra_left_out"], 0)
        self.assertLess(answer["input_extra_left_out"], 100)
        error = self.server.post("/infill", {"input_prefix": "1 " * 100000}, status=400)["error"]
        self.assertEqual(error["code"], "context_length_exceeded")

    def test_nothing_is_predicted_to_fill_the_cache(self):
        answer = self.server.post("/infill", {"input_prefix": "a b c", "n_predict": 0})
        self.assertEqual((answer["content"], answer["tokens_predicted"]), ("", 0))

    def test_suffix_of_the_other_endpoints(self):
        content, _ = self.expected("What is ", " + 25?", 8)
        answer = self.server.post("/v1/completions", {
            "prompt": "What is ", "suffix": " + 25?", "max_tokens": 8, "temperature": 0})
        self.assertEqual(answer["choices"][0]["text"], content)
        answer = self.server.post("/api/generate", {
            "prompt": "What is ", "suffix": " + 25?", "stream": False, "options": {"num_predict": 8, "temperature": 0}})
        self.assertEqual(answer["response"], content)
        self.assertIn("insert", self.server.post("/api/show", {"model": "gap"})["capabilities"])
        for body in ({"prompt": [1, 2], "suffix": "a"}, {"prompt": "a", "suffix": 3},
                     {"prompt": "a", "suffix": "b", "echo": True}):
            self.server.post("/v1/completions", body, status=400)

    def test_model_that_knows_no_gaps(self):
        with Server() as server:
            for path, body in (("/infill", {"input_prefix": "a", "input_suffix": "b"}),
                               ("/v1/completions", {"prompt": "a", "suffix": "b"})):
                error = server.post(path, body, status=501)["error"]
                self.assertEqual(error["type"], "not_supported_error")
                self.assertIn("fim_pre_token_id", error["message"])
            plain = server.post("/v1/completions", {"prompt": "a", "suffix": "", "max_tokens": 1})
            self.assertEqual(plain["object"], "text_completion")
            self.assertNotIn("insert", server.post("/api/show", {"model": "demo"})["capabilities"])


if __name__ == "__main__":
    serving.main()
