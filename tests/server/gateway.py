"""HAProxy with deploy/haproxy.cfg in front of two replicas, and clients that keep asking: for replicas_test.py."""
# SPDX-License-Identifier: Apache-2.0
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from serving import PATIENCE

CONFIG = Path(__file__).resolve().parent.parent.parent / "deploy" / "haproxy.cfg"
# Debian puts it where only root's PATH looks.
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


class Gateway:
    """The gateway on a free port of 127.0.0.1, before the given replicas; ends with the block."""

    def __init__(self, *replicas):
        # HAProxy inherits a socket that listens already, so no other program can take the port in between.
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            self.port = listener.getsockname()[1]
            self.log_file = tempfile.TemporaryFile(mode="w+")
            env = {**os.environ, "SLUICE_GATEWAY": f"fd@{listener.fileno()}"}
            for i, replica in enumerate(replicas, 1):
                env[f"SLUICE_REPLICA_{i}"] = f"127.0.0.1:{replica.port}"
            env.pop("SLUICE_TLS_CERT", None)
            self.process = subprocess.Popen([HAPROXY, "-db", "-f", str(CONFIG)], env=env, stdout=self.log_file,
                                            stderr=subprocess.STDOUT, pass_fds=[listener.fileno()])
        self.wait_until_up()

    def wait_until_up(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.ask("GET", "/health").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"no gateway: {self.read_log()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.log_file.close()

    def read_log(self):
        self.log_file.seek(0)
        return self.log_file.read()

    def ask(self, method, path, body=None, headers=None):
        """One request on a connection of its own; see Answer."""
        return Answer(self.port, method, path, body, headers or {})


class Answer:
    """What became of one request. `begun`: the head of an answer came; `is_whole`: so did all the rest."""

    def __init__(self, port, method, path, body, headers):
        self.status = self.replica = None
        self.begun = self.is_whole = False
        self.text = b""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(body) if body else None,
                               {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            self.begun = True
            self.status, self.headers = response.status, response.headers
            self.replica = response.getheader("X-Sluice-Replica")
            self.text = response.read()
            # A stream that broke off inside the server ends without this mark, though HTTP is content.
            is_stream = response.getheader("Content-Type", "").startswith("text/event-stream")
            self.is_whole = not is_stream or self.text.endswith(b"data: [DONE]\n\n")
        except http.client.IncompleteRead:
            pass
        except OSError as error:
            self.text = repr(error).encode()
        except http.client.HTTPException as error:
            self.text = repr(error).encode()
        finally:
            connection.close()

    @property
    def is_good(self):
        return self.status == 200 and self.is_whole

    def __repr__(self):
        return f"<{self.status} of {self.replica}, begun {self.begun}, whole {self.is_whole}: {self.text[:300]}>"


class Load:
    """Clients on threads of their own that ask one question after the other; half of them want streams."""

    def __init__(self, gateway, n_clients=8, n_most=400):
        self.gateway = gateway
        self.n_most = n_most  # of each client, so that no fault makes this endless
        self.answers = []
        self.should_stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n_clients)]

    def run(self, client):
        for turn in range(self.n_most):
            if self.should_stop.is_set():
                return
            body = {"messages": [{"role": "user", "content": f"Client {client}: tell me about the sea."}],
                    "seed": turn, "ignore_eos": True, "max_tokens": 24, "stream": client % 2 == 0}
            self.answers.append(self.gateway.ask("POST", "/v1/chat/completions", body))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.should_stop.set()
        for thread in self.threads:
            thread.join()

    def wait_for_answers(self, n):
        """Until n more have come, or none could."""
        goal = len(self.answers) + n
        end = time.monotonic() + PATIENCE
        while len(self.answers) < goal and any(t.is_alive() for t in self.threads):
            if time.monotonic() > end:
                raise AssertionError(f"{len(self.answers)} answers, {goal} expected; the last: {self.answers[-3:]}")
            time.sleep(0.02)
