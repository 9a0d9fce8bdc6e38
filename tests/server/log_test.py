#!/usr/bin/env python3
"""The log where nobody reads it: no answer waits for it, and it says what it had to drop.

    log_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import os
import unittest

import serving
from serving import PATIENCE, Server, chat

N_REQUESTS = 3000  # more lines than the server keeps and a pipe holds


class LogTest(unittest.TestCase):
    def setUp(self):
        reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)
        self.reader = open(reader)
        self.addCleanup(self.reader.close)

    def start(self, *flags):
        server = Server(*flags, log=self.writer)
        os.close(self.writer)
        self.addCleanup(server.stop)
        return server

    def ask(self, server, n):
        connection = server.connect()
        for _ in range(n):
            connection.request("GET", "/health")
            response = connection.getresponse()
            self.assertEqual((response.status, response.read()), (200, b'{"status":"ok"}'))
        connection.close()

    def test_a_reader_who_stands_still_and_goes_on(self):
        server = self.start()
        self.ask(server, N_REQUESTS)
        server.post("/v1/chat/completions", chat("Hello.", max_tokens=3))
        lines = []
        for line in self.reader:
            lines.append(line)
            if line.startswith("POST /v1/chat/completions 200"):
                break
        dropped = [line for line in lines if "lines of the log were dropped" in line]
        self.assertTrue(dropped, lines[:3])
        n_dropped = sum(int(line[1:].split(" ")[0]) for line in dropped)
        n_health = sum(line.startswith("GET /health 200") for line in lines)
        self.assertEqual(n_health + n_dropped, N_REQUESTS)

    def test_a_reader_who_stands_still_to_the_end(self):
        server = self.start()
        self.ask(server, N_REQUESTS)
        server.process.terminate()
        self.assertEqual(server.process.wait(timeout=PATIENCE), 0)

    def test_a_reader_who_leaves(self):
        server = self.start()
        self.reader.close()
        self.ask(server, 10)
        self.assertEqual(server.stop()[0], 0)

    def test_flags_as_for_llama_server_and_a_context_beyond_the_trained_one(self):
        server = Server("--metrics", "--slots", "-cb", "-fa", "on", "-np", "2", "-a", "mine", "--log-disable", "-c", "4k")
        with server:
            self.assertEqual(server.request("GET", "/metrics")[0], 200)
        log = server.read_log()
        self.assertIn("note: --metrics has no meaning here: the server has it in any case\n", log)
        self.assertIn("warning: a context of 4096 tokens is more than the 2048 that the model was trained for", log)
        self.assertNotIn("GET /metrics", log)

    def test_quiet_means_no_lines_of_requests(self):
        with Server("--quiet") as server:
            self.ask(server, 3)
            self.assertEqual(server.stop()[1], "")


if __name__ == "__main__":
    serving.main()
