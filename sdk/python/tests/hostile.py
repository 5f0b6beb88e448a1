"""A server on a local socket that answers as badly as a test asks."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Behaviour = Callable[["Connection"], None]


@dataclass
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    def json(self) -> object:
        return json.loads(self.body)


@dataclass
class Connection:
    """A connection on which one request has been read."""

    socket: socket.socket
    request: Received
    stop: threading.Event

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.sendall(data)


@dataclass
class Hostile:
    """Plays the behaviours it is given, one for each request, and the last one from then on."""

    script: list[Behaviour] = field(default_factory=list)
    requests: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def base_url(self) -> str:
        return self.origin + "/api/v1"

    def play(self, *script: Behaviour) -> None:
        self.script = list(script)

    def received(self, count: int) -> list[Received]:
        """Wait for so many requests, at most for a minute, and return what there is."""
        end = time.monotonic() + 60
        while len(self.requests) < count and time.monotonic() < end:
            self._stop.wait(0.01)
        return self.requests

    def close(self) -> None:
        self._stop.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(60)
            request = self._read(connection)
            if request is None:
                return
            with self._lock:
                self.requests.append(request)
                step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            step(Connection(connection, request, self._stop))

    def _read(self, connection: socket.socket) -> Received | None:
        data = b""
        while b"\r\n\r\n" not in data:
            try:
                chunk = connection.recv(65536)
            except OSError:
                return None
            if not chunk:
                return None
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", "0")):
            body += connection.recv(65536)
        method, path, _ = first.split(" ")
        return Received(method, path, headers, body, time.monotonic())


def answer(
    status: int = 200, body: object = b"", kind: str = "application/json", **headers: str
) -> Behaviour:
    """Answer properly. A body that is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return lambda c: c.send("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


def problem(
    status: int, code: str, retryable: bool = False, detail: str = "said so", **headers: str
) -> Behaviour:
    """Answer with problem details."""
    body = {
        "type": "/errors/" + code.replace("_", "-"), "title": "Title", "status": status, "detail": detail,
        "error": f"Title ({detail})", "code": code, "retryable": retryable, "trace_id": "trace-1",
    }  # fmt: skip
    return answer(status, body, "application/problem+json", **headers)


def raw(data: bytes) -> Behaviour:
    """Send these bytes and close."""
    return lambda c: c.send(data)


def reset(after: bytes = b"") -> Behaviour:
    """Break the connection with a reset, after some bytes."""

    def step(c: Connection) -> None:
        c.send(after)
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return step


def hang(after: bytes = b"") -> Behaviour:
    """Send some bytes, and then nothing until the test is over."""

    def step(c: Connection) -> None:
        c.send(after)
        c.stop.wait(60)

    return step


def drip(before: bytes, byte: bytes = b" ", every: float = 0.02) -> Behaviour:
    """Send a byte now and then for as long as anybody listens."""

    def step(c: Connection) -> None:
        with contextlib.suppress(OSError):
            c.socket.sendall(before)
            while not c.stop.wait(every):
                c.socket.sendall(byte)

    return step
