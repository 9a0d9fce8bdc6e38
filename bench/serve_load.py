#!/usr/bin/env python3
"""`sluice serve` under 64 connections of good and bad requests for a while: only documented statuses may come, memory
must stay flat, /health must be quick while answers are computed, and the server must end well. Not a test of `make
test`: it takes minutes and looks at the clock (make load seconds=300).

    serve_load.py SLUICE SECONDS
"""
# SPDX-License-Identifier: Apache-2.0
import asyncio
import collections
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from load_client import PATIENCE, Client, request

N_CONNECTIONS = 64
HEALTH_LIMIT = 0.050  # seconds, for 99 of 100
MOST_GROWTH = 16  # MiB after the warm-up; the allocator keeps a few, more or less
FLAGS = ["--port", "0", "--parallel", "8", "--queue", "24", "--max-body", "1", "--timeout", "5", "-c", "1024"]
SEA = {"messages": [{"role": "user", "content": "Tell me about the sea."}]}
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
BUSY = {200, 429}


def post(path, body, headers=""):
    return lambda rng: request("POST", path, body, headers)


def chat(**fields):
    def make(rng):
        turn = {"role": "user", "content": f"What is {rng.randrange(50)} + {rng.randrange(50)}?"}
        return request("POST", CHAT, {"messages": [turn], "max_tokens": rng.randrange(1, 48),
                                      "seed": rng.randrange(1000), **fields})
    return make


# What is asked: name, weight, how the bytes are made, and the statuses that docs/serve.md promises.
ASKED = [
    ("chat", 20, chat(), BUSY),
    ("chat, streamed", 20, chat(stream=True), BUSY),
    ("chat, endless", 6, chat(ignore_eos=True, stream=True, max_tokens=200), BUSY),
    ("chat, as JSON", 3, chat(response_format={"type": "json_object"}), BUSY),
    ("chat, deadline", 3, chat(ignore_eos=True, max_tokens=900, timeout=0.01), {408, 429}),
    ("completion", 5, post(TEXT, {"prompt": "The sea", "max_tokens": 8}), BUSY),
    ("messages", 5, post("/v1/messages", {**SEA, "max_tokens": 8}), BUSY),
    ("responses", 3, post("/v1/responses", {"input": "Hello.", "max_output_tokens": 8}), BUSY),
    ("ollama", 3, post("/api/chat", {**SEA, "options": {"num_predict": 8}}), BUSY),
    ("tokenize", 5, post("/tokenize", {"content": "one two three"}), {200}),
    ("models", 3, lambda rng: request("GET", "/v1/models"), {200}),
    ("metrics", 1, lambda rng: request("GET", "/metrics"), {200}),
    ("no route", 2, lambda rng: request("GET", "/nothing/here"), {404}),
    ("wrong method", 2, lambda rng: request("PUT", CHAT, b"{}"), {405}),
    ("no JSON", 2, post(CHAT, b'{"messages": [}'), {400}),
    ("not UTF-8", 2, post(CHAT, b'{"messages": "\xff\xfe"}'), {400}),
    ("deep", 1, post(CHAT, b"[" * 100000), {400}),
    ("wrong types", 2, post(CHAT, {"messages": 7, "temperature": "warm"}), {400}),
    ("too long a prompt", 2, post(CHAT, {"messages": [{"role": "user", "content": "sea " * 4000}]}), {400}),
    ("too large a body", 1, post(CHAT, b" " * (2 << 20)), {413}),
    ("too large a header", 1, post(CHAT, b"{}", "X: " + "a" * 20000 + "\r\n"), {431}),
    ("no HTTP", 1, lambda rng: rng.randbytes(200).replace(b"\n", b"") + b"\r\n\r\n", {400}),
]
LEAVES = "leaves"  # asks for a stream and is gone after its first bytes


class Load:
    def __init__(self, port):
        self.port = port
        self.counts = collections.Counter()
        self.wrong = []

    def note(self, name, status, expected, text=b""):
        self.counts[name, status] += 1
        if status not in expected and len(self.wrong) < 20:
            self.wrong.append(f"{name}: {status}, expected {sorted(expected)}: {text[:200]}")

    async def leave(self, client, rng):
        await client.send(chat(ignore_eos=True, stream=True, max_tokens=500)(rng))
        status, _ = await client.head()
        await client.close()
        self.note(LEAVES, status, BUSY)

    async def one(self, client, rng):
        pick = rng.choices([*ASKED, (LEAVES, 5, None, BUSY)], [w for _, w, _, _ in ASKED] + [5])[0]
        name, _, make, expected = pick
        try:
            if make is None:
                return await asyncio.wait_for(self.leave(client, rng), PATIENCE)
            status, text = await asyncio.wait_for(client.ask(make(rng)), PATIENCE)
            self.note(name, status, expected, text)
            if status == 429:  # as a client should, though not for a whole second
                await asyncio.sleep(0.1)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            # A server that refuses a body may close before all of it was sent; nobody else may be cut off.
            self.note(name, "cut off", {"cut off"} if name.startswith("too large") else expected, repr(error).encode())
            await client.close()

    async def run(self, index, end):
        client, rng = Client(self.port), random.Random(index)
        while time.monotonic() < end:
            await self.one(client, rng)
        await client.close()


async def run_load(load, seconds):
    end = time.monotonic() + seconds
    await asyncio.gather(*(load.run(i, end) for i in range(N_CONNECTIONS)))


def probe(port, seconds):
    """In a process of its own, or the 64 clients would delay the clock: asks /health 20 times a second. How late it
    wakes from its own pauses is the yardstick: /health needs two such wakes, the server's and the client's."""
    took, late = [], []
    end = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < end:
            start = time.monotonic()
            s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                piece = s.recv(4096)
                if not piece:
                    raise ConnectionError(f"/health was cut off after {answer}")
                answer += piece
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            took.append(time.monotonic() - start)
            start = time.monotonic()
            time.sleep(0.05)
            late.append(time.monotonic() - start - 0.05)
    print(json.dumps([sorted(took), sorted(late)]))


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024


async def watch_memory(pid, seconds, samples):
    for _ in range(max(1, int(seconds))):
        samples.append(resident_mib(pid))
        await asyncio.sleep(1)


def metrics(port):
    async def ask():
        client = Client(port)
        _, text = await client.ask(request("GET", "/metrics"))
        await client.close()
        return text.decode()
    text = asyncio.run(ask())
    return {name: float(value) for name, value in re.findall(r"^(sluice_\S+) (\S+)$", text, re.MULTILINE)}


def settled(port):
    """The metrics once no answer runs: clients have left, and the server may need a moment to notice."""
    for _ in range(PATIENCE * 5):
        found = metrics(port)
        if found["sluice_answers_running"] == found["sluice_answers_queued"] == 0:
            break
        time.sleep(0.2)
    return found


async def run_all(load, pid, port, seconds):
    samples = []
    prober = subprocess.Popen([sys.executable, __file__, "--probe", str(port), str(seconds)], stdout=subprocess.PIPE)
    await asyncio.gather(run_load(load, seconds), watch_memory(pid, seconds, samples))
    took = prober.communicate(timeout=PATIENCE)[0]
    return samples, *(json.loads(took) if took else ([], []))


def print_counts(load):
    print("\n| request | status | times |\n|---|---|---:|")
    for (name, status), n in sorted(load.counts.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        print(f"| {name} | {status} | {n} |")
    print(f"\n{sum(load.counts.values())} requests over {N_CONNECTIONS} connections")


def percentiles(times):
    """p50, p99 and the slowest of sorted times, in ms."""
    return [times[min(len(times) - 1, int(len(times) * share))] * 1e3 for share in (0.5, 0.99, 1)]


def check(load, samples, took, late, found):
    """Prints the figures; yields what is wrong with them."""
    print_counts(load)
    yield from load.wrong
    fifth = max(1, len(samples) // 5)
    before, after = statistics.median(samples[fifth:2 * fifth] or samples), statistics.median(samples[-fifth:])
    print(f"resident memory: {samples[0]:.1f} MiB at the start, {before:.1f} in the second fifth of the time, "
          f"{after:.1f} in the last, {max(samples):.1f} at most")
    if after - before > MOST_GROWTH:
        yield f"memory grew by {after - before:.1f} MiB after the warm-up; {MOST_GROWTH} are allowed"
    if not took:
        yield "/health could not be asked to the end"
    else:
        for name, times in (("/health while decoding", took), ("a process that sleeps wakes late by", late)):
            print("%s, %d times: p50 %.2f ms, p99 %.2f ms, slowest %.2f ms" % (name, len(times), *percentiles(times)))
        if (p99 := percentiles(took)[1]) > HEALTH_LIMIT * 1e3:
            yield f"p99 of /health is {p99:.1f} ms; the bar is {HEALTH_LIMIT * 1e3:.0f} ms"
    print(f"tokens: {found['sluice_new_tokens_total']:.0f} new, {found['sluice_prompt_tokens_total']:.0f} of prompts "
          f"computed, {found['sluice_reused_tokens_total']:.0f} found computed")
    for name, expected in (("sluice_answers_running", 0), ("sluice_answers_queued", 0),
                           ('sluice_answers_total{end="failed"}', 0)):
        if found[name] != expected:
            yield f"{name} is {found[name]}; expected {expected}"


def main():
    if sys.argv[1] == "--probe":
        return probe(int(sys.argv[2]), float(sys.argv[3]))
    sluice, seconds = sys.argv[1], float(sys.argv[2])
    with tempfile.TemporaryFile(mode="w+") as log:
        server = subprocess.Popen([sluice, "serve", *FLAGS], stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            address = server.stdout.readline()
            if not address:
                server.wait(PATIENCE)
                log.seek(0)
                sys.exit(f"the server did not start: {log.read().strip()}")
            port = int(address.rsplit(":", 1)[1])
            print(f"sluice serve {' '.join(FLAGS)}: {seconds:.0f} s, {os.cpu_count()} cores")
            load = Load(port)
            samples, took, late = asyncio.run(run_all(load, server.pid, port, seconds))
            print("load average: %.1f of the last minute, %.1f of five; this program brings about 3" %
                  os.getloadavg()[:2])
            problems = list(check(load, samples, took, late, settled(port)))
            server.send_signal(signal.SIGTERM)
            if (code := server.wait(PATIENCE)) != 0:
                problems.append(f"the server ended with {code}; expected 0")
        finally:
            server.kill()
            server.wait(PATIENCE)
        log.seek(0)
        problems += [line.strip() for line in log if line.startswith("fault")][:20]
    for problem in problems:
        print(f"WRONG: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
