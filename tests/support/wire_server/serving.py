"""Serves the application over real HTTP, in a thread of its own with an event loop of its own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tests.support.wire_server.app import Config, Record, WireApp, wire_app
from tests.support.wire_server.faults import Kind

START_S = 300.0


class Reachable(H11Protocol):
    """Shows the application its connection, which must be had to reset it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state = {**self.app_state, "transport": transport}
        super().connection_made(transport)


class Unsignalled(uvicorn.Server):
    """Leaves signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WireServer:
    """A running server, for a ``with``.

    Args:
        config: what it offers; default: everything by default.
        port: of 127.0.0.1; 0: a free one.
        uds: a path for a unix socket, instead of TCP.
        around: makes what is served of the application, such as a copy of all that goes in and out.
        options: fields of ``Config``, instead of ``config``.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        port: int = 0,
        uds: Path | None = None,
        around: Callable[[WireApp], Any] | None = None,
        **options: Any,
    ) -> None:
        self.app: WireApp = wire_app(config or Config(**options))
        self._port = port
        self._uds = uds
        self._listener: socket.socket | None = None
        self._server = Unsignalled(
            uvicorn.Config(
                around(self.app) if around else self.app,
                http=Reachable,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=600,
                timeout_graceful_shutdown=1,
                backlog=512,
            )
        )
        self._thread = threading.Thread(target=self._run, name="wire-server", daemon=True)

    def __enter__(self) -> Self:
        self._listener = self._bound()
        self._thread.start()
        waiting = threading.Event()
        for _ in range(int(START_S / 0.005)):
            if self._server.started:
                return self
            if not self._thread.is_alive():
                break
            waiting.wait(0.005)
        raise RuntimeError("the wire server did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(START_S)
        if self._uds:
            self._uds.unlink(missing_ok=True)

    @property
    def port(self) -> int:
        """Of 127.0.0.1."""
        assert self._listener is not None, "the server is not running"
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Without a path: an Anthropic client's base URL; an OpenAI client's is ``openai_url``."""
        return "http://wire-server" if self._uds else f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL of OpenAI's clients."""
        return self.url + "/v1"

    @property
    def requests(self) -> list[Record]:
        """See ``WireApp.requests``."""
        return self.app.requests

    @property
    def answered(self) -> int:
        """See ``WireApp.answered``."""
        return self.app.answered

    @property
    def faults(self) -> Mapping[Kind, int]:
        """See ``WireApp.faults``."""
        return self.app.faults

    @property
    def spent_usd(self) -> float:
        """See ``WireApp.spent_usd``."""
        return self.app.spent_usd

    def outage(self, down: bool, kind: Kind = Kind.ERROR_503, seconds: float = 1.0) -> None:
        """See ``WireApp.outage``."""
        self.app.outage(down, kind, seconds)

    def _bound(self) -> socket.socket:
        if self._uds:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(self._uds))
        else:
            # asyncio turns Nagle's algorithm off only where the protocol is named: else each answer waits 40 ms.
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
        return listener

    def _run(self) -> None:
        assert self._listener is not None, "the server is not running"
        asyncio.run(self._server.serve(sockets=[self._listener]))
