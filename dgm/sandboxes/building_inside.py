"""Runs inside a build's sandbox: starts a command that reaches the index proxy, or sends a folder to it.

dgm puts it into the sandbox as a file; standard library only, Python >= 3.9. The proxy's unix socket is a port of the
loopback for the command.
"""

# ruff: noqa: PTH115, PTH118, PTH123

from __future__ import annotations

import contextlib
import os
import select
import socket
import socketserver
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

PORT = 8377
TOOLS = "/opt/dgm-uv"
"""Folder of uv, as dgm's machine has it."""
OWN_TOOLS = "/work/cache/uv"
"""Where pip puts another."""
FAILED = 70
"""Exit status where a folder could not be sent."""
ENTRY = struct.Struct(">cHQ")
"""Kind (``d``, ``f``, ``x`` for a program, ``l`` for a link), length of the name, length of the content."""


def main() -> int:
    """Run what the command line says; return its exit status."""
    path, task, *words = sys.argv[1:]
    if task == "send":
        return send(path, words[0])
    Path(words[0]).mkdir(parents=True, exist_ok=True)
    try:
        env = environment(forward(path))
        ensure_uv(env)
        return subprocess.call(words[1:], cwd=words[0], env=env)
    except OSError as error:
        print(f"{words[1]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 127


def ensure_uv(env: dict[str, str]) -> None:
    """Install uv where that of dgm's machine is for another system or processor."""
    try:
        subprocess.run(
            ["uv", "--version"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
    except OSError:
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", OWN_TOOLS, "uv"]
        subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False)


def environment(port: int) -> dict[str, str]:
    """Return the variables of a command, all of which name the proxy."""
    proxy = f"http://127.0.0.1:{port}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    java = " ".join(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={port}" for kind in ("http", "https"))
    given = dict(os.environ)
    return {
        **given,
        "PATH": f"{OWN_TOOLS}/bin:{TOOLS}:{given['PATH']}",
        **{each: proxy for name in names for each in (name, name.upper())},
        "JAVA_TOOL_OPTIONS": f"{java} {given.get('JAVA_TOOL_OPTIONS', '')}".strip(),
    }


def forward(path: str) -> int:
    """Offer the socket as a port of the loopback, and return the port."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as far, contextlib.suppress(OSError):
                far.connect(path)
                pump(self.request, far)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 128

    try:
        server = Server(("127.0.0.1", PORT), Connection)
    except OSError:
        server = Server(("127.0.0.1", 0), Connection)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


def pump(near: socket.socket, far: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended."""
    ends = {near: far, far: near}
    while ends:
        for source in select.select(list(ends), [], [])[0]:
            data = source.recv(65536)
            if data:
                ends[source].sendall(data)
            else:
                ends.pop(source).shutdown(socket.SHUT_WR)


def send(path: str, folder: str) -> int:
    """Send a folder to the proxy: an ``ENTRY`` for each folder, file and link, then its name and its content."""
    with socket.socket(socket.AF_UNIX) as far:
        far.connect(path)
        far.sendall(b"PUT /result HTTP/1.1\r\n\r\n")
        try:
            with far.makefile("wb") as stream:
                write_entries(os.fsencode(folder), stream)
        except OSError as error:
            print(error.strerror, file=sys.stderr)  # noqa: T201
            return FAILED
        far.shutdown(socket.SHUT_WR)
        return 0 if b" 200 " in far.recv(65536) else FAILED


def write_entries(top: bytes, stream: IO[bytes]) -> None:
    """Write a folder's entries; each folder comes before what lies in it.

    Raises:
        OSError: the folder is missing, or one of its files cannot be read.
    """
    for path, folders, names in os.walk(top, onerror=fail):
        for place in (os.path.join(path, name) for name in sorted(folders + names)):
            info, name = os.lstat(place), os.path.relpath(place, top)
            if stat.S_ISDIR(info.st_mode):
                stream.write(ENTRY.pack(b"d", len(name), 0) + name)
            elif stat.S_ISLNK(info.st_mode):
                target = os.readlink(place)
                stream.write(ENTRY.pack(b"l", len(name), len(target)) + name + target)
            elif stat.S_ISREG(info.st_mode):
                kind = b"x" if info.st_mode & stat.S_IXUSR else b"f"
                stream.write(ENTRY.pack(kind, len(name), info.st_size) + name)
                write_content(place, info.st_size, stream)


def write_content(file: bytes, size: int, stream: IO[bytes]) -> None:
    """Write as many bytes as a file had, whatever a background process does to it."""
    with open(file, "rb") as source:
        while size:
            data = source.read(min(size, 1 << 20)) or bytes(min(size, 1 << 20))
            stream.write(data)
            size -= len(data)


def fail(error: OSError) -> None:
    """Raise an error that ``os.walk`` would pass over."""
    raise error


if __name__ == "__main__":
    sys.exit(main())
