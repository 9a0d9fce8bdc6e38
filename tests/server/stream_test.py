#!/usr/bin/env python3
"""Streams: pieces that make the whole answer, their ends, and clients that leave before.

    stream_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import signal
import threading
import unittest

import serving
from serving import PATIENCE, Server, chat, metric, wait_for

STORY = "Tell me about the sea."
ENDLESS = {"ignore_eos": True, "seed": 1}


def texts(events, field="content"):
    return "".join(c["delta"].get(field) or "" for e in events if e != "[DONE]" for c in e["choices"])


class StreamTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)

    def stream(self, text, **fields):
        return self.server.events("/v1/chat/completions", chat(text, stream=True, **fields))

    def begin(self, **fields):
        """A stream whose first event has come."""
        connection = self.server.connect()
        connection.request("POST", "/v1/chat/completions",
                           json.dumps(chat(STORY, stream=True, **ENDLESS, **fields)))
        response = connection.getresponse()
        self.assertTrue(response.readline().startswith(b"data: "))
        return connection, response

    def test_pieces_make_the_whole(self):
        fields = {"seed": 4, "max_tokens": 40}
        whole = self.server.post("/v1/chat/completions", chat(STORY, **fields))
        events = self.stream(STORY, stream_options={"include_usage": True}, **fields)
        self.assertEqual(texts(events), whole["choices"][0]["message"]["content"])
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[-2]["choices"], [])
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(events[-2]["usage"][name], whole["usage"][name])
        self.assertEqual(events[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual(events[-3]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"])
        self.assertGreater(len(events), 10)

    def test_thinking_streams_apart(self):
        events = self.stream("What is 17 + 25?", temperature=0, chat_template_kwargs={"enable_thinking": True})
        self.assertTrue(texts(events, "reasoning_content"))
        self.assertNotIn("think>", texts(events))

    def test_tool_calls_stream(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": {
            "type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]}}}
        events = self.stream("Call it.", tools=[tool], tool_choice="required", seed=1)
        deltas = [c["delta"]["tool_calls"][0] for e in events if e != "[DONE]" for c in e["choices"]
                  if "tool_calls" in c["delta"]]
        self.assertEqual(deltas[0]["function"]["name"], "f")
        self.assertIn(json.loads("".join(d["function"]["arguments"] for d in deltas))["x"], [True, False])
        self.assertEqual(events[-2]["choices"][0]["finish_reason"], "tool_calls")

    def test_completions_stream(self):
        body = {"prompt": "The sea", "seed": 3, "max_tokens": 20}
        whole = self.server.post("/v1/completions", body)["choices"][0]["text"]
        events = self.server.events("/v1/completions", {**body, "stream": True})
        self.assertEqual("".join(c["text"] for e in events[:-1] for c in e["choices"]), whole)

    def test_a_client_that_leaves_cancels(self):
        connection, response = self.begin()
        response.close()
        connection.close()
        wait_for(lambda: metric(self.server, "sluice_http_disconnects_total") == 1)
        wait_for(lambda: metric(self.server, "sluice_answers_running") == 0)
        self.assertLess(metric(self.server, "sluice_new_tokens_total"), 4000)

    def test_a_whole_answer_is_cancelled_too(self):
        connection = self.server.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(STORY, **ENDLESS)))
        wait_for(lambda: metric(self.server, "sluice_new_tokens_total") > 0)
        connection.close()
        wait_for(lambda: metric(self.server, "sluice_http_disconnects_total") == 1)
        wait_for(lambda: metric(self.server, "sluice_answers_running") == 0)

    def test_a_client_that_has_its_answer_may_leave(self):
        # Leaving at once meets the server before it knows that its last byte was sent; clients on many threads make
        # that likely.
        def ask():
            for _ in range(100):
                self.server.get("/health")
        clients = [threading.Thread(target=ask) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(metric(self.server, "sluice_http_disconnects_total"), 0)

    def test_several_requests_on_one_connection(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions",
                               json.dumps(chat(STORY, stream=True, max_tokens=3, seed=1)))
            self.assertTrue(connection.getresponse().read().endswith(b"data: [DONE]\n\n"))

    def test_sigterm_lets_answers_end(self):
        connection, response = self.begin(max_tokens=200)
        self.server.process.send_signal(signal.SIGTERM)
        self.assertTrue(response.read().endswith(b"data: [DONE]\n\n"))
        connection.close()
        self.assertEqual(self.server.process.wait(PATIENCE), 0)

    def test_live_state(self):
        connection = self.server.connect()
        connection.request("GET", "/api/sluice/live")
        response = connection.getresponse()
        for _ in range(2):
            state = json.loads(response.readline()[len("data: "):])
            self.assertIn("hit_rate", state["experts"])
            response.readline()
        code, _ = self.server.stop()
        self.assertEqual(code, 0)
        response.read()  # throws where the stream was broken off


class DrainTest(unittest.TestCase):
    def test_clients_that_keep_their_connection_do_not_hold_it(self):
        """SIGTERM may come between an answer and the wait for the next request; clients on many threads make that
        likely. Such a connection must not stay until it has been idle for long."""
        def ask(server, held):
            for _ in range(60):
                connection = server.connect()
                held.append(connection)
                try:
                    connection.request("GET", "/health")
                    connection.getresponse().read()
                except Exception:  # refused or closed: that is what SIGTERM is for
                    return

        for _ in range(5):
            held = []  # connections that ask once and stay open
            with Server("--drain", "3600", "--quiet") as server:
                clients = [threading.Thread(target=ask, args=(server, held)) for _ in range(16)]
                for client in clients:
                    client.start()
                wait_for(lambda: len(held) > 100)
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(60), 0)  # an idle connection would stay for 75 s
            for client in clients:
                client.join()
            for connection in held:
                connection.close()

    def test_what_does_not_end_in_time_is_broken_off(self):
        with Server("--drain", "0", "-c", "4096") as server:
            connection = server.connect()
            connection.request("POST", "/v1/chat/completions", json.dumps(chat(STORY, stream=True, **ENDLESS)))
            response = connection.getresponse()
            response.readline()
            self.assertEqual(server.stop()[0], 0)
            try:
                self.assertNotIn(b"[DONE]", response.read())
            except ConnectionError:
                pass  # it was broken off in the midst of a chunk
            except Exception as error:  # http.client's IncompleteRead is no OSError
                self.assertEqual(type(error).__name__, "IncompleteRead")


if __name__ == "__main__":
    serving.main()
