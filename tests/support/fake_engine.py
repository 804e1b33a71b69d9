"""An engine that only says what it is: enough to decide whether it is used."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

VERSION: Mapping[str, Any] = {
    "Version": "20.10.24",
    "ApiVersion": "1.41",
    "Arch": "amd64",
    "Os": "linux",
    "Components": [{"Name": "Engine"}, {"Name": "containerd"}],
}
INFO: Mapping[str, Any] = {
    "PidsLimit": True,
    "MemoryLimit": True,
    "CgroupVersion": "2",
    "SecurityOptions": ["name=seccomp,profile=default"],
}
ROOTLESS: Mapping[str, Any] = {
    "PidsLimit": False,
    "MemoryLimit": False,
    "CgroupVersion": "1",
    "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"],
}
"""An ordinary user's engine on a machine with control groups of version 1."""
PODMAN: Mapping[str, Any] = {
    **VERSION,
    "Version": "4.3.1",
    "Components": [{"Name": "Podman Engine"}, {"Name": "Conmon"}],
}


@contextlib.contextmanager
def serve_engine(
    path: Path, version: Mapping[str, Any] = VERSION, info: Mapping[str, Any] = INFO
) -> Iterator[str]:
    """Answer at the socket ``path``; yield its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            body = json.dumps({"version": version, "info": info}[name]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "socket"

        def log_message(self, *_: object) -> None:
            pass

    with socketserver.ThreadingUnixStreamServer(str(path), Answer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"unix://{path}"
        server.shutdown()
