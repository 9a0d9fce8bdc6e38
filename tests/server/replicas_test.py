#!/usr/bin/env python3
"""Two replicas behind a real HAProxy with deploy/haproxy.cfg: conversations stay with their replica, the death of one
costs no request that had not begun to be answered, and a drained one costs nothing.

    replicas_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import http.server
import json
import signal
import sys
import threading
import unittest

import serving
from gateway import HAPROXY, Gateway, Load
from serving import PATIENCE, Server, metric, wait_for

SKIPPED = 77  # what ctest takes for "not run"
FLAGS = ("--parallel", "8", "--drain", str(PATIENCE), "--quiet")


def turns(n, first, system=None):
    """A conversation of n questions, with the answers between them."""
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": first})
    for i in range(1, n):
        messages += [{"role": "assistant", "content": f"{i} + {i} = {i + i}."},
                     {"role": "user", "content": f"What is {i} + {i + 1}?"}]
    return messages


class Refusing:
    """In place of a replica: in good health, and answers every POST with one status; ends with the block."""

    def __init__(self, status):
        self.n_asked = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(handler, code):
                handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
                handler.send_response(code)
                handler.send_header("Retry-After", "1")
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def do_GET(handler):
                handler.answer(200)

            def do_POST(handler):
                self.n_asked += 1
                handler.answer(status)

            def log_message(handler, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # the gateway resets the connections of its health checks
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class ReplicasTest(unittest.TestCase):
    def setUp(self):
        self.replicas = {}
        for name in ("replica1", "replica2"):
            self.replicas[name] = Server(*FLAGS)
            self.addCleanup(self.replicas[name].stop)
        self.gateway = Gateway(*self.replicas.values())
        self.addCleanup(self.gateway.__exit__)

    def chat(self, messages, headers=None, **fields):
        answer = self.gateway.ask("POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 4, **fields},
                                  headers)
        self.assertTrue(answer.is_good, answer)
        return answer

    def check_stays(self, make_turn, n_chats=6):
        """The turns of each chat are answered by one replica, and not all chats by the same one."""
        seen = set()
        for chat in range(n_chats):
            asked = {make_turn(chat, turn).replica for turn in range(1, 4)}
            self.assertEqual(len(asked), 1, f"chat {chat} was answered by {asked}")
            seen |= asked
        self.assertEqual(seen, set(self.replicas), "all chats went to one replica")

    def check_only_replica2_answers(self):
        asked = {self.chat(turns(1, f"What is {i} + 7?")).replica for i in range(6)}
        self.assertEqual(asked, {"replica2"})

    def test_a_conversation_stays_with_its_replica(self):
        before = {name: metric(server, "sluice_reused_tokens_total") for name, server in self.replicas.items()}
        self.check_stays(lambda chat, turn: self.chat(turns(turn, f"What is {chat} + 7?")))
        for name, server in self.replicas.items():
            self.assertGreater(metric(server, "sluice_reused_tokens_total"), before[name], f"{name} reused nothing")

    def test_what_names_a_conversation(self):
        system = "You are a careful assistant."  # the same in all chats: it must not be the whole name
        self.check_stays(lambda chat, turn: self.chat(turns(turn, f"What is {chat} + 7?", system)))
        def in_parts(chat, turn):
            first = [{"role": "user", "content": [{"type": "text", "text": f"Count to {chat}."}]}]
            return self.chat(first + turns(turn, "")[1:])
        self.check_stays(in_parts)
        self.check_stays(lambda chat, turn: self.chat(turns(1, f"Turn {turn}."), {"X-Conversation-Id": f"chat-{chat}"}))
        self.check_stays(lambda chat, turn: self.chat(turns(1, f"Turn {turn}."), prompt_cache_key=f"key-{chat}"))

    def test_a_body_larger_than_the_buffer_stays_too(self):
        """The gateway sees only its beginning, which is the beginning of the conversation."""
        def ask(chat, turn):
            body = {"messages": turns(1, f"What is {chat} + 7?"), "content": "x " * (140000 + turn)}
            answer = self.gateway.ask("POST", "/tokenize", body)
            self.assertTrue(answer.is_good, answer)
            return answer
        self.check_stays(ask)

    def test_killing_a_replica_costs_only_answers_that_had_begun(self):
        victim = self.replicas["replica1"]
        pinned = next(name for name in map(str, range(50))
                      if self.chat(turns(1, "Hi."), {"X-Conversation-Id": name}).replica == "replica1")
        long_answers = []
        ask_long = threading.Thread(target=lambda: long_answers.append(self.chat(
            turns(1, "Tell me about the sea."), {"X-Conversation-Id": pinned}, max_tokens=600, ignore_eos=True)))
        with Load(self.gateway) as load:
            load.wait_for_answers(16)
            tokens = metric(victim, "sluice_new_tokens_total")
            ask_long.start()  # not streamed: it has not begun to be answered until it is complete
            wait_for(lambda: metric(victim, "sluice_new_tokens_total") > tokens + 50)
            victim.process.kill()
            load.wait_for_answers(40)
        ask_long.join()
        self.assertEqual([a.replica for a in long_answers], ["replica2"], "the long answer was lost with its replica")
        failed = [a for a in load.answers if not a.is_good]
        wrong = [a for a in failed if not a.begun or a.status != 200 or a.replica != "replica1"]
        self.assertEqual(wrong, [], f"{len(wrong)} of {len(load.answers)} requests failed before they were answered")
        self.assertLessEqual(len(failed), len(load.threads), "more streams broke than were running")
        self.check_only_replica2_answers()

    def test_draining_a_replica_costs_nothing(self):
        leaving = self.replicas["replica1"]
        with Load(self.gateway) as load:
            load.wait_for_answers(16)
            leaving.process.send_signal(signal.SIGTERM)
            load.wait_for_answers(40)
        failed = [a for a in load.answers if not a.is_good]
        self.assertEqual(failed, [], f"{len(failed)} of {len(load.answers)} requests failed")
        self.assertIn("replica1", {a.replica for a in load.answers})
        self.assertEqual(leaving.process.wait(PATIENCE), 0)
        self.check_only_replica2_answers()

    def test_a_replica_that_refuses(self):
        """503 is for another replica to answer, also for a long request; 429 is for the client to know."""
        for status in (503, 429):
            with Refusing(status) as refusing, Gateway(refusing, self.replicas["replica2"]) as gateway:
                answers = [gateway.ask("POST", "/tokenize", {"content": f"{i} " * 30000},
                                       {"X-Conversation-Id": str(i)}) for i in range(12)]
            refused = [a for a in answers if a.status == 429]
            self.assertTrue(all(a.status == 200 for a in answers if a not in refused), answers)
            self.assertGreater(refusing.n_asked, 0, "no request came to the replica that refuses")
            self.assertEqual(len(refused), refusing.n_asked if status == 429 else 0)
            self.assertTrue(all(a.headers["Retry-After"] == "1" for a in refused), refused)

    def test_what_the_gateway_answers_itself(self):
        self.assertEqual(self.gateway.ask("GET", "/metrics").status, 404)
        self.assertEqual(self.gateway.ask("GET", "/v1/models").status, 200)
        for replica in self.replicas.values():
            replica.stop()
        answer = self.gateway.ask("POST", "/v1/chat/completions", {"messages": turns(1, "Hi.")})
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "2"))
        self.assertIn("no replica is free", json.loads(answer.text)["error"]["message"])
        wait_for(lambda: self.gateway.ask("GET", "/health").status == 503)


if __name__ == "__main__":
    if not HAPROXY:
        print("SKIPPED: there is no haproxy (tools/install-packages test)")
        sys.exit(SKIPPED)
    serving.main()
