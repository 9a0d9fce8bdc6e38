#!/usr/bin/env python3
"""Models that come and go while the server runs: by name, by hand, and for want of use.

    models_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile
import threading
import unittest

import serving
from serving import Server, chat, metric, wait_for

OTHER = "demo-hybrid"


def states(server):
    return {model["name"]: model["status"] for model in server.get("/models")["models"]}


class ModelsTest(unittest.TestCase):
    def ask(self, server, model):
        return server.post("/v1/chat/completions", {**chat("What is 17 + 25?", max_tokens=8, seed=1), "model": model})

    def test_requests_choose_their_model(self):
        with Server("--swap") as server:
            self.assertEqual(states(server)["demo-attn"], "loaded")
            self.assertEqual(states(server)[OTHER], "unloaded")
            first = self.ask(server, "demo-attn")
            self.assertEqual(self.ask(server, OTHER)["model"], OTHER)
            self.assertEqual(states(server)[OTHER], "loaded")
            again = self.ask(server, "demo-attn:latest")
            self.assertEqual(again["choices"], first["choices"])
            self.assertEqual(metric(server, "sluice_models_loaded_total"), 3)
            self.assertEqual(metric(server, "sluice_models_unloaded_total"), 2)
            for name in ("nothing", "/etc/passwd", "../models/" + OTHER, OTHER + ".gguf"):
                error = server.post("/v1/chat/completions", {**chat("a"), "model": name}, status=404)["error"]
                self.assertEqual(error["code"], "model_not_found")
            self.assertIn(OTHER, [model["id"] for model in server.get("/v1/models")["data"]])

    def test_a_name_is_ignored_unless_asked_for(self):
        with Server() as server:
            self.assertEqual(self.ask(server, OTHER)["model"], "demo-attn")
            self.assertEqual(len(server.get("/v1/models")["data"]), 1)

    def test_running_answers_end_before_a_swap(self):
        with Server("--swap", "--parallel", "2") as server:
            answers = {}

            def stream(i):
                body = chat("Tell me about the sea.", stream=True, ignore_eos=True, max_tokens=300, seed=i)
                answers[i] = server.events("/v1/chat/completions", {**body, "model": "demo-attn"})

            def other(i):
                answers[i] = self.ask(server, OTHER if i % 2 else "demo-attn")["model"]

            threads = [threading.Thread(target=stream if i < 2 else other, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for i in (0, 1):
                self.assertEqual(answers[i][-1], "[DONE]")
                self.assertEqual(answers[i][-2]["choices"][0]["finish_reason"], "length")
            for i in range(2, 8):
                self.assertEqual(answers[i], OTHER if i % 2 else "demo-attn")

    def test_unload_waits_for_answers_and_the_next_request_loads(self):
        with Server() as server:
            connection = server.connect()
            body = chat("Tell me about the sea.", stream=True, ignore_eos=True, max_tokens=300)
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            response = connection.getresponse()
            response.readline()
            self.assertEqual(server.post("/models/unload", {})["status"], "unloaded")
            self.assertIn(b'"finish_reason":"length"', response.read())
            self.assertEqual(states(server)["demo-attn"], "unloaded")
            self.assertEqual(server.get("/api/ps"), {"models": []})
            server.get("/props", status=503)
            self.assertEqual(self.ask(server, "x")["model"], "demo-attn")
            self.assertEqual(states(server)["demo-attn"], "loaded")
            server.post("/models/unload", {"model": OTHER}, status=404)

    def test_a_load_that_fails_leaves_the_old_model(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "broken.gguf"), "wb") as file:
                file.write(b"GGUF" + b"\xff" * 100)
            with Server(env={"SLUICE_MODELS": folder}) as server:
                error = server.post("/models/load", {"model": "broken"}, status=500)["error"]
                self.assertEqual(error["code"], "model_load_failed")
                self.assertIn("broken", error["message"])
                self.assertNotIn(folder, error["message"])
                self.assertEqual(states(server)["demo-attn"], "loaded")
                self.assertEqual(self.ask(server, "x")["model"], "demo-attn")
                self.assertEqual(metric(server, "sluice_models_unloaded_total"), 0)
                self.assertIn("fault: ", server.stop()[1])

    def test_plans_before_a_load(self):
        with Server() as server:
            again = server.post("/models/load", {"model": OTHER, "plan_only": True})["plan"]
            plan = server.get(f"/models/{OTHER}/plan")
            for found in (plan, again):  # free memory is another each time
                self.assertEqual(found["model"]["name"], OTHER)
                self.assertEqual(found["n_sequences"], 8)
                speeds = [way["decode_tokens_per_second"] for way in found["modes"] if way["possible"]]
                self.assertGreater(min(speeds), 0)
            self.assertNotIn("/models/", json.dumps(plan))
            self.assertEqual(states(server)[OTHER], "unloaded")
            server.get("/models/nothing/plan", status=404)
            self.assertEqual(server.post("/models/load", {"model": OTHER})["status"], "loaded")
            self.assertEqual(self.ask(server, "x")["model"], OTHER)

    def test_an_unused_model_is_unloaded(self):
        with Server("--keep-alive", "0.1") as server:
            wait_for(lambda: metric(server, "sluice_models_unloaded_total") == 1)
            self.assertEqual(self.ask(server, "x")["model"], "demo-attn")
        with Server() as server:
            body = {"prompt": "a", "stream": False, "options": {"num_predict": 1}}
            server.post("/api/generate", {**body, "keep_alive": "5m"})
            server.post("/api/generate", {**body, "keep_alive": 0})
            wait_for(lambda: metric(server, "sluice_models_unloaded_total") == 1)
            server.post("/api/generate", {**body, "keep_alive": "soon"}, status=400)


if __name__ == "__main__":
    serving.main()
