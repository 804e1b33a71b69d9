"""An HTTP server that notes the notifications which are sent to it."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


def wait_until(condition: Callable[[], object], seconds: float = 200.0) -> None:
    """Wait until a condition holds, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Listener:
    """A server on a free port of this machine; ``address`` is apprise's for it."""

    def __init__(self, refusals: int = 0, port: int = 0) -> None:
        """Refuse so many notifications before the first that is accepted."""
        self.notifications: list[dict[str, Any]] = []
        self.refusals = refusals
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                record = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                refused, listener.refusals = listener.refusals > 0, listener.refusals - 1
                if not refused:
                    listener.notifications.append(record)
                self.send_response(503 if refused else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.address = f"json://127.0.0.1:{self._server.server_port}"

    @property
    def titles(self) -> list[str]:
        """Titles of the accepted notifications, in order."""
        return [record["title"] for record in self.notifications]

    def wait_for(self, words: str, seconds: float = 300.0) -> None:
        """Wait until a notification with these words in its title was accepted."""
        deadline = time.monotonic() + seconds
        while not any(words in title for title in self.titles):
            assert time.monotonic() < deadline, self.titles
            time.sleep(0.05)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
