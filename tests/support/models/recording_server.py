"""A server on the loopback that keeps what it is asked and answers as it is told."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        return urlsplit(self.target).query

    @property
    def body(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    content: bytes | Sequence[bytes] = b"{}"
    """Several parts are sent one by one, after ``go`` is set."""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    go: threading.Event | None = None


def said(value: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode())


@contextmanager
def recording(
    answer: Callable[[Asked], Answer], certificate: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[Asked]]]:
    """Gives the server's address and the list that grows with what it is asked."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            one = Asked(self.command, self.path, headers, self.rfile.read(length))
            asked.append(one)
            given = answer(one)
            parts = [given.content] if isinstance(given.content, bytes) else given.content
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(sum(map(len, parts))))
            self.end_headers()
            for place, part in enumerate(parts):
                if place and given.go:
                    given.go.wait(10)
                self.wfile.write(part)
                self.wfile.flush()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        server.socket = certificate.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
