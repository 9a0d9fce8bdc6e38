#!/usr/bin/env python3
"""A server that is killed (kill -9) while it answers, and started again: what it keeps on disk is whole. What the page
keeps in the browser is in tests/web/restart_test.mjs.

    restart_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import tempfile
import time
import unittest

import serving
from serving import Server, chat, metric, wait_for

DEVICE = ("--device", "sim", "--vram", "520MiB", "--moe", "cache", "--cache-slots", "64", "--machine", "none")
WITHOUT_IT = "starting without it"


def read(path):
    with open(path, "rb") as file:
        return file.read()


class RestartTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.profile = os.path.join(self.folder.name, "profile")

    def serve(self, *flags):
        return Server(*DEVICE, "--profile", self.profile, *flags)

    def ask(self, server):
        return server.post("/v1/chat/completions", chat("What is 17 + 25?", max_tokens=12, seed=1))["choices"]

    def begin_answer(self, server):
        """A stream that has begun and goes on for long."""
        connection = server.connect()
        body = chat("Tell me about the sea.", stream=True, ignore_eos=True, max_tokens=3000, seed=1)
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        while b'"content":"' not in response.readline():
            pass
        return connection

    def kill_while_it_answers(self, server):
        stream = self.begin_answer(server)
        wait_for(lambda: metric(server, "sluice_answers_running") == 1)
        self.assertEqual(server.stop(signal.SIGKILL)[0], -signal.SIGKILL)
        stream.close()

    def learn(self):
        """The profile of a server that ended well, and what it answered."""
        with self.serve() as server:
            answer = self.ask(server)
            self.assertEqual(server.stop()[0], 0)
        return read(self.profile), answer

    def check_it_is_read(self):
        """A server that starts with the profile has nothing to say of it; its answer."""
        with self.serve() as server:
            answer = self.ask(server)
            code, log = server.stop()
        self.assertEqual(code, 0)
        self.assertNotIn(WITHOUT_IT, log)
        self.assertNotIn("profile", log)
        return answer

    def test_the_profile_is_intact(self):
        learned, answer = self.learn()
        start = time.monotonic()
        with self.serve() as server:
            self.kill_while_it_answers(server)
        if time.monotonic() - start < 55:  # it is saved once a minute; nothing was due
            self.assertEqual(read(self.profile), learned)
        self.assertEqual(self.check_it_is_read(), answer)
        self.assertNotEqual(read(self.profile), learned, "nothing more was learned")

    def test_a_server_without_a_profile_yet(self):
        with self.serve() as server:
            self.kill_while_it_answers(server)
        self.check_it_is_read()
        self.assertTrue(read(self.profile))

    def test_killed_while_it_saves(self):
        """At its end a server saves. Killed at any moment of that, it leaves the old profile or the new one."""
        self.learn()
        for i in range(12):
            with self.serve() as server:
                self.ask(server)
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.002 * i)
                server.stop(signal.SIGKILL)
            self.assertGreater(len(read(self.profile)), 0)
        self.check_it_is_read()

    def test_what_a_killed_save_leaves_is_in_nobodys_way(self):
        """As if it had been killed between the first byte and the new name."""
        learned, answer = self.learn()
        with open(self.profile + ".partial", "wb") as file:
            file.write(learned[:len(learned) // 2])
        self.assertEqual(self.check_it_is_read(), answer)
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.endswith(".partial")], [])

    def test_a_profile_that_is_cut_would_be_told(self):
        """That the tests above can fail."""
        learned, _ = self.learn()
        with open(self.profile, "wb") as file:
            file.write(learned[:len(learned) // 2])
        with self.serve() as server:
            self.assertIn(WITHOUT_IT, server.stop()[1])

    def test_prefixes_are_intact(self):
        with tempfile.TemporaryDirectory() as folder:
            text = " ".join(f"The number {i} comes before {i + 1}." for i in range(30))
            with Server("--prefixes", folder) as server:
                saved = server.post("/prefixes/save", {"name": "a", "prompt": text})
                self.kill_while_it_answers(server)
            with open(os.path.join(folder, "a.prefix.partial"), "wb") as file:
                file.write(b"SLUICETX")  # of a save that was killed
            with Server("--prefixes", folder) as server:
                self.assertEqual([p["name"] for p in server.get("/prefixes")["prefixes"]], ["a"])
                self.assertEqual(server.post("/prefixes/restore", {"name": "a"})["n_tokens"], saved["n_tokens"])
                server.post("/prefixes/save", {"name": "a", "prompt": text})
                wait_for(lambda: os.listdir(folder) == ["a.prefix"])


if __name__ == "__main__":
    serving.main()
