#!/usr/bin/env python3
"""Clients that are slow, greedy, broken or not allowed: refused, and the server lives on.

    safety_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import socket
import threading
import time
import unittest

import serving
from serving import PATIENCE, Server, chat, metric

SECRET = "a-key-that-nobody-guesses"
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"


def talk(server, data, then_close=False):
    """Sends bytes; all that comes back until the server closes, or `then_close` half-closes us."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
        try:
            s.sendall(data)
            if then_close:
                s.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := s.recv(65536):
                answer += piece
            return answer
        except ConnectionError:
            return b"(reset)"


def drip(server, data, then, pause=0.1, n_most=600):
    """Sends `data`, and then one byte after the other until the server closes; how many of these went out."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(data)
        s.settimeout(pause)
        for i in range(n_most):
            try:
                s.sendall(then)
                if s.recv(1) == b"":
                    return i
            except socket.timeout:
                pass  # still open, and silent
            except ConnectionError:
                return i
    return n_most


def pour(server, head, piece, n_pieces):
    """Sends a head and a piece again and again while the server takes it; the answer, and how much was sent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
        answer = []
        reader = threading.Thread(target=lambda: answer.append(read_all(s)))
        reader.start()  # a server that refuses answers before all was sent
        n_sent = 0
        try:
            s.sendall(head)
            for _ in range(n_pieces):
                s.sendall(piece)
                n_sent += len(piece)
        except OSError:
            pass
        reader.join()
    return answer[0], n_sent


def read_all(s):
    answer = b""
    try:
        while piece := s.recv(65536):
            answer += piece
    except OSError:  # reset; or nothing came for too long, and the test will say what is missing
        pass
    return answer


def peak_mib(server):
    """The most memory that it ever had."""
    with open(f"/proc/{server.process.pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


class SafetyTest(unittest.TestCase):
    def check_alive(self, server):
        self.assertEqual(server.get("/health"), {"status": "ok"})

    def check_refused(self, server, body, words):
        """A body of raw bytes: 400, and every one of the words in its message."""
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/api/chat", "/tokenize"):
            status, _, answer = server.request("POST", path, body)
            self.assertEqual(status, 400, (path, answer))
            for word in words:
                self.assertIn(word, json.dumps(answer), path)
        self.check_alive(server)

    def test_slow_clients_are_closed(self):
        with Server("--timeout", "0.5") as server:
            self.assertEqual(talk(server, b"POST /v1/chat"), b"")  # the rest never comes
            self.assertEqual(talk(server, HEAD + b"Content-Length: 100\r\n\r\n{"), b"")
            self.check_alive(server)
            self.assertIn("408", server.stop()[1])

    def test_clients_that_drip_are_closed(self):
        """--timeout is for the whole request: a byte now and then does not buy more time."""
        with Server("--timeout", "1") as server:
            self.assertLess(drip(server, HEAD + b"X-A: ", b"b"), 600)  # a header that never ends
            self.assertLess(drip(server, HEAD + b"Content-Length: 100000\r\n\r\n{", b" "), 600)
            self.check_alive(server)
            self.assertEqual(server.stop()[1].count(" 408 "), 2)

    def test_many_clients_that_drip_shut_nobody_out(self):
        with Server("--timeout", "60") as server:
            sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(300)]
            for s in sockets:
                s.sendall(HEAD)  # and no more
            self.check_alive(server)
            server.post("/v1/chat/completions", chat("a", max_tokens=1))
            for s in sockets:
                s.close()

    def test_a_body_of_a_gigabyte(self):
        """Refused by its announced length, or once it is too long; in both cases it is never in memory."""
        gigabyte, mebibyte = 1 << 30, b" " * (1 << 20)
        with Server() as server:
            self.check_alive(server)
            before = peak_mib(server)
            announced = b"Content-Length: %d\r\n\r\n" % gigabyte
            answer, _ = pour(server, HEAD + announced, b"", 0)  # not a byte of it is sent
            self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
            for head, piece in ((announced, mebibyte),
                                (b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + mebibyte + b"\r\n")):
                answer, n_sent = pour(server, HEAD + head, piece, 1024)
                # Where the server closed while we still wrote, its answer may be lost.
                self.assertTrue(answer.startswith(b"HTTP/1.1 413 ") or (not answer and n_sent < gigabyte), answer[:200])
                self.check_alive(server)
            self.assertLess(peak_mib(server) - before, 128, "MiB more than before")
            self.assertEqual(server.stop()[1].count(" 413 "), 3)

    def test_bodies_that_are_not_utf_8(self):
        with Server() as server:
            for text in (b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"):
                self.check_refused(server, b'{"content": "' + text + b'"}', ["UTF-8", "byte 13"])

    def test_json_that_nests_too_deep(self):
        with Server() as server:
            for body in (b"[" * 100000, b'{"a":' * 100000, b'{"messages": ' + b"[" * 100000 + b"]" * 100000 + b"}"):
                self.check_refused(server, body, ["64 levels"])

    def test_large_bodies_and_headers(self):
        with Server("--max-body", "1") as server:
            answer = talk(server, HEAD + b"Content-Length: 1000000000\r\n\r\n{" + b" " * 100000)
            self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
            self.assertIn(b"--max-body", answer)
            chunks = b"".join(b"10000\r\n" + b" " * 65536 + b"\r\n" for _ in range(20))
            answer = talk(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
            self.assertTrue(answer.startswith(b"HTTP/1.1 413 ") or answer == b"(reset)", answer)
            answer = talk(server, HEAD + b"X: " + b"a" * 100000 + b"\r\n\r\n")
            self.assertTrue(answer.startswith(b"HTTP/1.1 431 "), answer)
            self.check_alive(server)

    def test_what_is_no_http(self):
        with Server() as server:
            for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 1000):
                answer = talk(server, data, then_close=True)
                self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 400 "), (data, answer))
                self.check_alive(server)

    def test_half_closed_sockets(self):
        with Server() as server:
            body = json.dumps(chat("Tell me about the sea.", ignore_eos=True)).encode()
            request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
            self.assertEqual(talk(server, request, then_close=True), b"")
            self.assertEqual(talk(server, request[:-5], then_close=True), b"")
            self.assertEqual(talk(server, b"", then_close=True), b"")
            self.check_alive(server)
            self.wait_for_idle(server)

    def wait_for_idle(self, server):
        """No answer is computed for a client that is gone."""
        end = time.monotonic() + PATIENCE
        while metric(server, "sluice_answers_running") and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(metric(server, "sluice_answers_running"), 0)

    def test_half_closed_in_a_stream(self):
        with Server("-c", "4096") as server:
            body = json.dumps(chat("Tell me about the sea.", ignore_eos=True, stream=True)).encode()
            with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
                s.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self.assertTrue(s.recv(12).startswith(b"HTTP/1.1 200"))
                s.shutdown(socket.SHUT_WR)
                self.assertNotIn(b"[DONE]", read_all(s))
            self.wait_for_idle(server)
            self.assertEqual(metric(server, "sluice_http_disconnects_total"), 1)

    def test_pipelined_requests(self):
        with Server() as server:
            get = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
            last = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            self.assertEqual(talk(server, get * 2 + last).count(b'{"status":"ok"}'), 3)

    def test_expect_continue(self):
        with Server() as server:
            body = b'{"content": "a"}'
            head = b"POST /tokenize HTTP/1.1\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
            answer = talk(server, head % len(body) + body)
            self.assertTrue(answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), answer)

    def test_full_queue(self):
        with Server("--parallel", "1", "--queue", "0") as server:
            connection = server.connect()
            connection.request("POST", "/v1/chat/completions", json.dumps(
                chat("Tell me about the sea.", stream=True, ignore_eos=True)))
            connection.getresponse().readline()
            statuses = set()
            for _ in range(3):
                status, headers, answer = server.request("POST", "/v1/chat/completions", chat("a", max_tokens=1))
                statuses.add(status)
                if status == 429:
                    self.assertEqual(headers["Retry-After"], "1")
                    self.assertEqual(answer["error"]["type"], "rate_limit_error")
            self.assertIn(429, statuses)
            connection.close()

    def test_deadline_of_a_request(self):
        with Server() as server:
            error = server.post("/v1/chat/completions",
                                chat("Tell me about the sea.", ignore_eos=True, timeout=0.05), status=408)["error"]
            self.assertIn("timeout", error["message"])

    def test_keys(self):
        with Server("--api-key", "other", env={"SLUICE_API_KEY": SECRET}) as server:
            self.check_alive(server)  # open to health checks
            for headers in (None, {"Authorization": "Bearer wrong"}, {"Authorization": SECRET}):
                error = server.post("/v1/chat/completions", chat("a"), status=401, headers=headers)["error"]
                self.assertEqual(error["type"], "authentication_error")
            for headers in ({"Authorization": "Bearer " + SECRET}, {"X-Api-Key": SECRET}, {"X-Api-Key": "other"}):
                server.get("/v1/models", headers=headers)
            self.assertNotIn(SECRET, server.stop()[1])

    def test_pages_from_elsewhere(self):
        evil = {"Origin": "http://evil.example"}
        with Server() as server:
            self.assertEqual(server.request("GET", "/v1/models", headers=evil)[0], 403)
            self.assertEqual(server.request("OPTIONS", "/v1/models", headers=evil)[0], 403)
            own = {"Origin": f"http://127.0.0.1:{server.port}"}
            self.assertEqual(server.request("GET", "/v1/models", headers=own)[0], 200)
        with Server("--cors", "http://evil.example") as server:
            status, headers, _ = server.request("GET", "/v1/models", headers=evil)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "http://evil.example"))
            self.assertEqual(server.request("OPTIONS", "/v1/models", headers=evil)[0], 204)

    def test_logs_hold_nothing_of_clients(self):
        with Server() as server:
            server.post("/v1/chat/completions", chat("my private words", max_tokens=3))
            server.get("/secret-path?secret-query", status=404)
            log = server.stop()[1]
            self.assertIn("POST /v1/chat/completions 200", log)
            for text in ("private", "secret"):
                self.assertNotIn(text, log)

    def test_only_this_machine_by_default(self):
        with Server() as server:
            with socket.socket() as s:  # the same port of another address is free
                s.bind(("127.0.0.2", server.port))
            self.assertEqual(metric(server, "sluice_answers_running"), 0)


if __name__ == "__main__":
    serving.main()
