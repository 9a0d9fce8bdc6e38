#!/usr/bin/env python3
"""Beginnings of prompts that are saved on disk and restored by name: across restarts, for chats and texts; and names,
files and clients that are refused.

    prefixes_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile
import threading
import unittest

import serving
from serving import Server, chat, metric

DOCUMENT = " ".join(f"The number {i} comes before {i + 1}." for i in range(60))
SYSTEM = {"role": "system", "content": DOCUMENT}
CONTEXT = ("-c", "2048")
BAD_NAMES = ("", ".", "..", "../a", "a/b", "/etc/passwd", ".a", "a\\b", "a b", "ä", "a\n", "a\x00", "a" * 65, "%2e%2e")


def reused(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def ask(server, question="What is 17 + 25?"):
    body = chat(question, max_tokens=12, seed=3)
    return server.post("/v1/chat/completions", {**body, "messages": [SYSTEM, *body["messages"]]})


class PrefixesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def serve(self, *flags):
        return Server(*CONTEXT, "--prefixes", self.folder.name, *flags)

    def file(self, name):
        return os.path.join(self.folder.name, name + ".prefix")

    def test_a_chat_goes_on_after_a_restart(self):
        with self.serve() as server:
            plain = ask(server)
            self.assertEqual(reused(plain), 0)
        with self.serve() as server:
            saved = server.post("/prefixes/save", {"name": "manual", "messages": [SYSTEM]})
            self.assertEqual((saved["name"], saved["status"]), ("manual", "saved"))
            self.assertGreater(saved["n_tokens"], 100)
            self.assertEqual(saved["bytes"], os.path.getsize(self.file("manual")))
            self.assertEqual(server.get("/prefixes"), {"prefixes": [{"name": "manual", "bytes": saved["bytes"]}]})
        with self.serve() as server:
            restored = server.post("/prefixes/restore", {"name": "manual"})
            self.assertEqual((restored["status"], restored["n_tokens"]), ("restored", saved["n_tokens"]))
            answer = ask(server)
            self.assertEqual(reused(answer), saved["n_tokens"])
            self.assertEqual(answer["choices"], plain["choices"])
            self.assertLess(metric(server, "sluice_prompt_tokens_total"), 100)
            self.assertGreaterEqual(reused(ask(server, "What is 1 + 1?")), saved["n_tokens"])

    def test_recurrent_layers_too(self):
        with self.serve("-m", "demo-hybrid") as server:
            saved = server.post("/prefixes/save", {"name": "manual", "messages": [SYSTEM]})
            plain = ask(server)
        with self.serve("-m", "demo-hybrid") as server:
            server.post("/prefixes/restore", {"name": "manual"})
            answer = ask(server)
            self.assertEqual(reused(answer), saved["n_tokens"])
            self.assertEqual(answer["choices"], plain["choices"])

    def test_texts_and_token_ids(self):
        with self.serve() as server:
            ids = server.post("/tokenize", {"content": DOCUMENT, "add_special": True, "parse_special": False})["tokens"]
            first = server.post("/prefixes/save", {"name": "text", "prompt": DOCUMENT})
            second = server.post("/prefixes/save", {"name": "ids", "prompt": ids})
            self.assertEqual(first["n_tokens"], second["n_tokens"])
            self.assertEqual(second["n_reused"], len(ids) - 1)
            with open(self.file("text"), "rb") as a, open(self.file("ids"), "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_erase(self):
        with self.serve() as server:
            server.post("/prefixes/save", {"name": "a", "prompt": DOCUMENT})
            self.assertEqual(server.post("/prefixes/erase", {"name": "a"}), {"name": "a", "status": "erased"})
            self.assertEqual(os.listdir(self.folder.name), [])
            for what in ("erase", "restore"):
                error = server.post(f"/prefixes/{what}", {"name": "a"}, status=404)["error"]
                self.assertEqual(error["code"], "prefix_not_found")

    def test_saving_again_replaces(self):
        with self.serve() as server:
            server.post("/prefixes/save", {"name": "a", "prompt": DOCUMENT})
            saved = server.post("/prefixes/save", {"name": "a", "prompt": DOCUMENT[:200]})
            self.assertEqual(os.listdir(self.folder.name), ["a.prefix"])
            self.assertEqual(server.post("/prefixes/restore", {"name": "a"})["n_tokens"], saved["n_tokens"])

    def test_names_that_lead_elsewhere(self):
        with self.serve() as server:
            for name in BAD_NAMES:
                for what in ("save", "restore", "erase"):
                    error = server.post(f"/prefixes/{what}", {"name": name, "prompt": "a b c"}, status=400)["error"]
                    self.assertEqual(error["param"], "name", name)
            for body in ({}, {"name": 7}, {"name": None}, {"name": ["a"]}):
                server.post("/prefixes/restore", body, status=400)
            self.assertEqual(os.listdir(self.folder.name), [])

    def test_prompts_that_make_no_sense(self):
        with self.serve() as server:
            for fields in ({}, {"prompt": 7}, {"prompt": ""}, {"prompt": []}, {"prompt": [10**6]}, {"prompt": ["a"]},
                           {"prompt": "a", "messages": [SYSTEM]}, {"messages": "a"},
                           {"prompt": "sea " * 4000}, {"prompt": "a", "timeout": 0}):
                error = server.post("/prefixes/save", {"name": "a", **fields}, status=400)["error"]
                self.assertTrue(error["message"])
            self.assertEqual(os.listdir(self.folder.name), [])

    def test_damaged_and_foreign_files(self):
        with self.serve() as server:
            server.post("/prefixes/save", {"name": "a", "prompt": DOCUMENT})
        with open(self.file("a"), "rb") as file:
            whole = file.read()
        with self.serve() as server:  # which does not hold the text
            damaged = bytearray(whole)
            damaged[len(whole) // 2] ^= 1
            for bytes_of, status, code, words in (
                    (damaged, 500, "prefix_file_failed", "does not match"),
                    (whole[:-9], 500, "prefix_file_failed", "it was cut"),
                    (b"GGUF" * 50, 400, "prefix_mismatch", "is no text that sluice has saved"),
                    (b"", 400, "prefix_mismatch", "is no text")):
                with open(self.file("b"), "wb") as file:
                    file.write(bytes_of)
                error = server.post("/prefixes/restore", {"name": "b"}, status=status)["error"]
                self.assertEqual((error["code"], error["param"]), (code, "name"))
                self.assertIn(words, error["message"])
                self.assertNotIn(self.folder.name, json.dumps(error))
            os.mkdir(self.file("c"))
            server.post("/prefixes/restore", {"name": "c"}, status=404)
            self.assertEqual(ask(server)["choices"][0]["finish_reason"], "stop")
            log = server.stop()[1]
            self.assertIn("fault: a prefix: is damaged", log)
            self.assertNotIn(self.folder.name, log)
        with self.serve("-m", "demo-hybrid") as server:
            error = server.post("/prefixes/restore", {"name": "a"}, status=400)["error"]
            self.assertIn("another model", error["message"])

    def test_a_folder_that_is_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Server("--prefixes", folder)
        with server:
            error = server.post("/prefixes/save", {"name": "a", "prompt": "one two three"}, status=500)["error"]
            self.assertEqual(error["code"], "prefix_file_failed")
            self.assertNotIn(folder, error["message"])
            server.get("/prefixes", status=500)
            server.get("/health")

    def test_answers_go_on_beside_it(self):
        with self.serve("--parallel", "2") as server:
            alone = server.events("/v1/chat/completions",
                                  chat("Tell me about the sea.", stream=True, ignore_eos=True, max_tokens=150, seed=5))
            texts = {}

            def stream():
                body = chat("Tell me about the sea.", stream=True, ignore_eos=True, max_tokens=150, seed=5)
                texts["beside"] = server.events("/v1/chat/completions", body)

            thread = threading.Thread(target=stream)
            thread.start()
            for i in range(4):
                server.post("/prefixes/save", {"name": f"a{i}", "prompt": f"{i} {DOCUMENT}"})
                server.post("/prefixes/restore", {"name": f"a{i}"})
            thread.join()
            pieces = [[e["choices"][0]["delta"].get("content", "") for e in events if e != "[DONE]" and e["choices"]]
                      for events in (alone, texts["beside"])]
            self.assertEqual("".join(pieces[0]), "".join(pieces[1]))

    def test_off_unless_asked_for(self):
        with Server() as server:
            self.assertIn("--prefixes", server.get("/prefixes", status=501)["error"]["message"])
            for what in ("save", "restore", "erase"):
                server.post(f"/prefixes/{what}", {"name": "a", "prompt": "a b c"}, status=501)

    def test_keys(self):
        with self.serve("--api-key", "a-key") as server:
            server.get("/prefixes", status=401)
            for what in ("save", "restore", "erase"):
                server.post(f"/prefixes/{what}", {"name": "a", "prompt": "a b c"}, status=401)
            self.assertEqual(os.listdir(self.folder.name), [])
            key = {"Authorization": "Bearer a-key"}
            server.post("/prefixes/save", {"name": "a", "prompt": "a b c"}, headers=key)

    def test_what_is_no_folder(self):
        with self.assertRaisesRegex(RuntimeError, "is no folder; expected one that exists"):
            Server("--prefixes", os.path.join(self.folder.name, "nothing"))

    def test_the_model_that_is_named(self):
        with self.serve("--swap") as server:
            server.post("/prefixes/save", {"name": "h", "model": "demo-hybrid", "messages": [SYSTEM]})
            error = server.post("/prefixes/restore", {"name": "h", "model": "demo-attn"}, status=400)["error"]
            self.assertEqual(error["code"], "prefix_mismatch")
            restored = server.post("/prefixes/restore", {"name": "h", "model": "demo-hybrid"})
            self.assertEqual(restored["model"], "demo-hybrid")


if __name__ == "__main__":
    serving.main()
