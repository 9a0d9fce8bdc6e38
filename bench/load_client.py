"""A client of HTTP/1.1 for serve_load.py that can also misbehave: it sends any bytes, and may leave at any time."""
# SPDX-License-Identifier: Apache-2.0
import asyncio
import json

PATIENCE = 120  # seconds, against hangs alone


class Client:
    """One connection, opened again whenever the server or a fault has closed it."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def open(self):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)

    async def close(self):
        if self.writer is not None:
            self.writer.close()
            try:
                await self.writer.wait_closed()
            except OSError:
                pass
            self.reader = self.writer = None

    async def send(self, data):
        await self.open()
        self.writer.write(data)
        await self.writer.drain()

    async def head(self):
        """The status and the headers of an answer."""
        while True:
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            if status != 100:
                return status, {name.lower(): value for name, value in
                                (line.split(": ", 1) for line in lines[1:] if line)}

    async def body(self, headers):
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", 0)))
        text = b""
        while True:
            n_bytes = int(await self.reader.readuntil(b"\r\n"), 16)
            text += (await self.reader.readexactly(n_bytes + 2))[:n_bytes]
            if n_bytes == 0:
                return text

    async def ask(self, data):
        """Sends the bytes of a request; the status of the answer, and its body."""
        await self.send(data)
        status, headers = await self.head()
        text = await self.body(headers)
        if headers.get("connection") == "close":
            await self.close()
        return status, text


def request(method, path, body=b"", headers=""):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"{method} {path} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {len(data)}\r\n\r\n").encode() + data
