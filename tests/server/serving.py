"""A server of the program under test, and a client as simple as can be: for the tests beside it."""
# SPDX-License-Identifier: Apache-2.0
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SLUICE = None  # the program; main() sets it
PATIENCE = 120  # seconds, against hangs alone


class Server:
    """`sluice serve` with the demo model on a free port; ends with the block."""

    def __init__(self, *flags, env=None, log=None):
        """log: a file to write the log to; else it goes to one of its own, which stop() reads."""
        self.log_file = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [SLUICE, "serve", "--port", "0", "-t", "1", *flags], stdout=subprocess.PIPE, stderr=log or self.log_file,
            text=True, env={**os.environ, **(env or {})})
        line = self.process.stdout.readline()
        if not line.startswith("listening at http://"):
            raise RuntimeError(f"no server: {line}{self.read_log()}")
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM):
        """Asks it to end; its exit code and what it logged."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, self.read_log()

    def read_log(self):
        self.log_file.seek(0)
        return self.log_file.read()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def request(self, method, path, body=None, headers=None):
        """Status, headers and body, which is parsed where it is JSON."""
        connection = self.connect()
        data = json.dumps(body) if isinstance(body, dict) else body
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        is_json = response.getheader("Content-Type", "").startswith("application/json")
        return response.status, response.headers, json.loads(text) if is_json and text else text

    def post(self, path, body, status=200, headers=None):
        found, _, answer = self.request("POST", path, body, headers)
        assert found == status, f"{path}: status {found}, expected {status}: {answer}"
        return answer

    def get(self, path, status=200, headers=None):
        found, _, answer = self.request("GET", path, headers=headers)
        assert found == status, f"{path}: status {found}, expected {status}: {answer}"
        return answer

    def events(self, path, body):
        """The data of a stream's events, in order; the last may be "[DONE]"."""
        connection = self.connect()
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.getheader("Content-Type") == "text/event-stream"
        events = []
        for line in response.read().decode().split("\n"):
            if line.startswith("data: "):
                data = line[len("data: "):]
                events.append(data if data == "[DONE]" else json.loads(data))
        connection.close()
        return events


def run(*flags):
    """What `sluice run --json` answers."""
    done = subprocess.run([SLUICE, "run", "-t", "1", "--json", *flags], capture_output=True, text=True, check=True,
                          timeout=PATIENCE)
    return json.loads(done.stdout)


def wait_for(condition):
    """Waits until it holds; fails where it never does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it never came true")
        time.sleep(0.02)


def metric(server, name):
    """The sum of all lines of a metric."""
    text = server.get("/metrics").decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.split("\n")
               if line.startswith((name + " ", name + "{")))


def chat(text, **fields):
    return {"model": "demo", "messages": [{"role": "user", "content": text}], **fields}


def main():
    global SLUICE
    sys.modules["serving"].SLUICE = SLUICE = sys.argv.pop(1)
    unittest.main(module="__main__", verbosity=0)
