"""What a registry says of the size of images, by its public protocol."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dgm.sandboxes.registry import download_bytes, split_reference

LAYERS = {"one": [("base", 100), ("own1", 10)], "two": [("base", 100), ("own2", 20)]}


class Registry(BaseHTTPRequestHandler):
    """A registry that wants an anonymous token and keeps an index for several platforms."""

    def do_GET(self):
        host = f"http://{self.headers['Host']}"
        if self.path.startswith("/token"):
            return self.answer(200, {"token": "t"})
        if self.headers.get("Authorization") != "Bearer t":
            return self.answer(401, {}, f'Bearer realm="{host}/token",service="s",scope="repository:x:pull"')
        _, _, name, _, reference = self.path.split("/", 4)
        if name not in LAYERS:
            return self.answer(404, {})
        if reference == "latest":
            platforms = [("arm64", "sha256:other"), ("amd64", "sha256:right")]
            manifests = [
                {"digest": digest, "platform": {"os": "linux", "architecture": machine}}
                for machine, digest in platforms
            ]
            return self.answer(200, {"manifests": manifests})
        assert reference == "sha256:right"
        return self.answer(200, {"layers": [{"digest": name, "size": size} for name, size in LAYERS[name]]})

    def answer(self, status, body, challenge=None):
        self.send_response(status)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        data = json.dumps(body).encode()
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def registry():
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_layers_in_common_count_once(registry):
    assert download_bytes([f"{registry}/one:latest"]) == 110
    assert download_bytes([f"{registry}/one", f"{registry}/two"]) == 130


@pytest.mark.slow
def test_a_silent_registry_tells_nothing(registry):
    assert download_bytes([f"{registry}/none"]) is None
    assert download_bytes(["127.0.0.1:1/one"]) is None


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("ubuntu:22.04", ("registry-1.docker.io", "library/ubuntu", "22.04")),
        ("swebench/x:latest", ("registry-1.docker.io", "swebench/x", "latest")),
        ("docker.io/a/b", ("registry-1.docker.io", "a/b", "latest")),
        ("ghcr.io/a/b:1", ("ghcr.io", "a/b", "1")),
        ("localhost:5000/a@sha256:0", ("localhost:5000", "a", "sha256:0")),
    ],
)
def test_references_are_read_as_the_engine_reads_them(reference, parts):
    assert split_reference(reference) == parts
