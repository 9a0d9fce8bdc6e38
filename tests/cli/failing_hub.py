"""A hub of models on this machine that fails on demand: drops connections, sends wrong ranges and bytes, asks to wait,
wants a token, redirects elsewhere. Counts every byte of a file that it sends.
"""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import http.server
import json
import re
import threading
import time

BLOCK = 64 * 1024


class Hub:
    """Files are {path: bytes}. `faults`: a list from which each request for a part of a file takes the first; the
    names are those of the methods fault_* below."""

    def __init__(self, files, repo="user/repo"):
        self.files, self.repo = files, repo
        self.sha256 = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
        self.faults, self.requests = [], []
        self.n_sent, self.n_faults = 0, 0
        self.n_at_once, self.most_at_once = 0, 0  # parts that are being sent
        self.needed_token = None
        self.redirect_to = None
        self.pace = 0.0  # seconds for each block
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Handler(self, *a))
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients leave in the midst of an answer
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def listing(self):
        return [{"type": "file", "path": path, "size": len(data),
                 "lfs": {"oid": self.sha256[path], "size": len(data)}} for path, data in self.files.items()]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub, *args):
        self.hub = hub
        super().__init__(*args)

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        hub = self.hub
        with hub.lock:
            hub.requests.append((self.path, dict(self.headers)))
        if hub.needed_token and self.headers.get("Authorization") != f"Bearer {hub.needed_token}":
            return self.answer(401)
        if self.path.startswith(f"/api/models/{hub.repo}/tree/main"):
            return self.answer(200, json.dumps(hub.listing()).encode())
        path = self.path.partition("/resolve/main/")[2] or self.path.partition("/elsewhere/")[2]
        if path not in hub.files:
            return self.answer(404)
        if hub.redirect_to and "/resolve/" in self.path:
            return self.answer(302, Location=f"{hub.redirect_to}/elsewhere/{path}")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        data = hub.files[path]
        begin, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(data))
        with hub.lock:
            fault = hub.faults.pop(0) if hub.faults else None
            hub.n_faults += fault is not None
        if fault:
            return getattr(self, "fault_" + fault)(data, begin, end)
        self.send_part(data, begin, end)

    def send_part(self, data, begin, end, n_sent=None):
        """`n_sent`: so many bytes of it, then the connection ends."""
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        stop = end if n_sent is None else min(end, begin + n_sent)
        with self.hub.lock:
            self.hub.n_at_once += 1
            self.hub.most_at_once = max(self.hub.most_at_once, self.hub.n_at_once)
        try:
            self.send_blocks(data, begin, stop)
        finally:
            with self.hub.lock:
                self.hub.n_at_once -= 1
        if stop < end:
            self.close_connection = True

    def send_blocks(self, data, begin, stop):
        for at in range(begin, stop, BLOCK):
            block = data[at:min(at + BLOCK, stop)]
            self.wfile.write(block)
            with self.hub.lock:
                self.hub.n_sent += len(block)
            if self.hub.pace:
                time.sleep(self.hub.pace)

    def fault_drop_early(self, data, begin, end):
        self.close_connection = True

    def fault_drop_half(self, data, begin, end):
        self.send_part(data, begin, end, (end - begin) // 2)

    def fault_wrong_range(self, data, begin, end):
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin + 7}-{end + 6}/{len(data)}")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"evil")

    def fault_whole(self, data, begin, end):
        self.answer(200, b"whole file, not the part")

    def fault_busy(self, data, begin, end):
        self.answer(429, Retry_After="1")

    def fault_error(self, data, begin, end):
        self.answer(503)

    def fault_wrong_bytes(self, data, begin, end):
        changed = bytearray(data)
        changed[begin] ^= 1
        self.send_part(bytes(changed), begin, end)

    def fault_stall(self, data, begin, end):
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        time.sleep(4)
        self.close_connection = True
