"""A provider of Chat Completions whose streams take a while, and which counts what it would bill for each request."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHUNKS = 10
MODEL = "m"
USD = (1e-6, 10e-6)
"""For a token of input, and for one of output."""


@dataclass(slots=True)
class Asked:
    """One request, and what became of its answer."""

    key: str
    """The conversation as JSON; equal for equal questions."""
    at: float
    """Monotonic time at which it was read."""
    input_tokens: int
    sizes: tuple[int, ...]
    """Tokens of each chunk."""
    pause_s: float
    stream: bool
    written: int = 0
    """Chunks."""
    whole: bool = False
    """Whether all of the answer was written, and nobody had hung up as far as could be seen."""

    @property
    def tokens(self) -> int:
        """What is billed, even if nobody waited for the answer's end: all that it would have held."""
        return self.input_tokens + sum(self.sizes)

    @property
    def usd(self) -> float:
        """The same in money."""
        return self.input_tokens * USD[0] + sum(self.sizes) * USD[1]

    @property
    def midway(self) -> bool:
        """Whether a part of the answer was written that is neither its beginning nor its end."""
        return self.stream and 3 <= self.written <= CHUNKS - 3


def conversation(body: dict) -> str:
    """Return what tells equal questions: all but the system's message, which may hold the time and ids."""
    return json.dumps([each for each in body["messages"] if each["role"] != "system"], sort_keys=True)


class StreamingProvider:
    """Serves on a port of its own; answers follow from the seed and the request alone."""

    def __init__(self, seed: int = 1, stream_s: tuple[float, float] = (0.5, 1.0)) -> None:
        self.asked: list[Asked] = []
        self.url = ""
        self._seed = seed
        self._stream_s = stream_s
        self._news = threading.Condition()

    @contextmanager
    def running(self) -> Iterator["StreamingProvider"]:
        """Serve while the context lasts."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _send(self, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                provider._answer(self, raw)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 64

        with Server(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield self
            finally:
                server.shutdown()

    def wait_for(self, holds: Callable[[Asked], bool], known: int, timeout_s: float) -> bool:
        """Return, as soon as it is so, whether it holds of a request after the first so many."""
        with self._news:
            return self._news.wait_for(lambda: any(map(holds, self.asked[known:])), timeout_s)

    def _answer(self, http: BaseHTTPRequestHandler, raw: bytes) -> None:
        asked = self._read(raw)
        with self._news:
            self.asked.append(asked)
            self._news.notify_all()
        try:
            if asked.stream:
                self._stream(http, asked)
            else:
                time.sleep(asked.pause_s * 3)
                text = _text(asked, range(CHUNKS))
                message = {"role": "assistant", "content": text}
                _send(http, _record("chat.completion", "message", message, "stop", _usage(asked)))
            with self._news:
                asked.whole = True
                self._news.notify_all()
        except OSError:
            # Whoever asked is dead. What was asked for is billed all the same.
            pass

    def _read(self, raw: bytes) -> Asked:
        body = json.loads(raw)
        key = conversation(body)
        dice = hashlib.sha256(f"{self._seed} {key}".encode()).digest()
        sizes = tuple(5 + dice[at] % 50 for at in range(CHUNKS))
        least, most = self._stream_s
        pause = (least + (most - least) * dice[-1] / 255) / CHUNKS
        return Asked(key, time.monotonic(), -(-len(raw) // 3), sizes, pause, bool(body.get("stream")))

    def _stream(self, http: BaseHTTPRequestHandler, asked: Asked) -> None:
        http.send_response(200)
        http.send_header("content-type", "text/event-stream")
        http.end_headers()
        for at in range(CHUNKS):
            time.sleep(asked.pause_s)
            delta = {"role": "assistant", "content": _text(asked, [at])}
            _write(http, _record("chat.completion.chunk", "delta", delta, None, None))
            with self._news:
                asked.written += 1
                self._news.notify_all()
        _write(http, _record("chat.completion.chunk", "delta", {}, "stop", None))
        _write(http, {**_record("chat.completion.chunk", "delta", {}, None, _usage(asked)), "choices": []})
        http.wfile.write(b"data: [DONE]\n\n")


def _record(kind: str, part: str, said: dict, finish: str | None, usage: dict | None) -> dict:
    choice = {"index": 0, part: said, "finish_reason": finish}
    whole = {"id": "c", "object": kind, "created": 1, "model": MODEL, "choices": [choice]}
    return {**whole, "usage": usage} if usage else whole


def _usage(asked: Asked) -> dict:
    output = sum(asked.sizes)
    return {"prompt_tokens": asked.input_tokens, "completion_tokens": output, "total_tokens": asked.tokens}


def _text(asked: Asked, chunks: Sequence[int]) -> str:
    return "".join(f"{at}" + " word" * asked.sizes[at] + ". " for at in chunks)


def _send(http: BaseHTTPRequestHandler, body: dict) -> None:
    data = json.dumps(body).encode()
    http.send_response(200)
    http.send_header("content-type", "application/json")
    http.send_header("content-length", str(len(data)))
    http.end_headers()
    http.wfile.write(data)


def _write(http: BaseHTTPRequestHandler, record: dict) -> None:
    http.wfile.write(b"data: " + json.dumps(record).encode() + b"\n\n")
    http.wfile.flush()
