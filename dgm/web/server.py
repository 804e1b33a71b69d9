"""``dgm serve``: the server in front of the application."""

import asyncio
import contextlib
import ipaddress
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from dgm.archive.finding import archive_folders, find_run
from dgm.errors import UserError
from dgm.web.app import make_app
from dgm.web.guard import LOOPBACK, Guard
from dgm.web.library import Library
from dgm.web.markup import encode_part

PORT = 8421
CLOSE_S = 1
"""Seconds that answers under way have at the end; viewers that follow a run never end by themselves."""
CONNECTIONS = 1_000
"""Maximum number of connections; further ones are answered 503."""
EVERYWHERE = ("0.0.0.0", "::")


def serve(
    target: str | Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open: bool = False,  # noqa: A002  (the name of the option)
    on_ready: Callable[[str], None] = print,
) -> None:
    """Show runs as a read-only page in a browser, also while they grow, until Ctrl-C.

    Other hosts can reach the page only with --host, and need the token in the printed address. Traffic is not
    encrypted.

    Args:
        target: A run, or a folder with runs. Default: all in $DGM_ARCHIVE and ./archive.
        host: Address to listen on; 0.0.0.0 for all addresses of this machine.
        port: Port to listen on; 0 for any free port.
        open: Open the page in a browser.
        on_ready: is called with the address once the server listens.

    Raises:
        UserError: there is no such run or folder, or nothing can listen there.
    """
    library, page = _find_runs(target)
    with _listen(host, port) as listener:
        port = listener.getsockname()[1]
        token = None if _is_loopback(listener) else secrets.token_urlsafe(32)
        hosts = (*LOOPBACK, host.lower()) if token is None else ()
        name = socket.gethostname() if host in EVERYWHERE else f"[{host}]" if ":" in host else host
        address = f"http://{name}:{port}{page}" + (f"?token={token}" if token else "")
        guard = Guard(make_app(library), token=token, hosts=hosts, cookie=f"dgm_{port}")

        def tell() -> None:
            on_ready(address)
            if open:
                webbrowser.open(address)

        asyncio.run(_Server(guard, tell).serve([listener]))


class _Server(uvicorn.Server):
    """A server that ends after the first Ctrl-C without an error, and tells when it listens."""

    def __init__(self, app: Guard, on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="critical",  # its messages are about what strangers send
                access_log=False,
                ws="none",
                limit_concurrency=CONNECTIONS,
                timeout_graceful_shutdown=CLOSE_S,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at the first signal; at the second, without waiting for answers under way."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        numbers = [
            number
            for number in (signal.SIGINT, signal.SIGTERM)
            if signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in numbers:
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _find_runs(target: str | Path | None) -> tuple[Library, str]:
    """Return the runs to show, and the path of the first page."""
    if target is None:
        return Library(), "/"
    folder = Path(target)
    runs = (folder, *(archive / folder for archive in archive_folders()))
    if folder.is_dir() and not any((run / "run.json").exists() for run in runs):
        return Library(folder=folder), "/"
    run = find_run(str(target))
    return Library(run=run), f"/{encode_part(run.name)}"


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise UserError(f"{port} is no port; give a number from 0 to 65535", argument="port")
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UserError(f"{host}: no address of this machine ({error})", argument="host") from error
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UserError(
            f"{host}:{port} cannot be used: {error.strerror}; choose another port, or 0 for any that is free"
        ) from error
    return listener


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback
