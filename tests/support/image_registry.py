"""A small image registry on this machine: an engine pushes images to it and pulls them from it."""

import contextlib
import hashlib
import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PATH = re.compile(
    r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs/uploads|blobs)/(?P<which>[^?]*)(?:\?(?P<query>.*))?"
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self):
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = bytearray()
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(found)

    def do_GET(self):
        asked = _PATH.fullmatch(self.path)
        if asked is None:
            return self._answer(200, b"{}")
        found = self.server.stored.get((asked["kind"], asked["name"], asked["which"]))
        if found is None:
            return self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "unknown"}]}')
        kind, body = found
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        return self._answer(200, body, Content_Type=kind, Docker_Content_Digest=digest)

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        asked = _PATH.fullmatch(self.path)
        where = f"/v2/{asked['name']}/blobs/uploads/{uuid.uuid4()}"
        self.server.uploads[where] = bytearray()
        self._answer(202, Location=where, Range="0-0")

    def do_PATCH(self):
        self.server.uploads[self.path] += self._body()
        self._answer(202, Location=self.path, Range=f"0-{len(self.server.uploads[self.path])}")

    def do_PUT(self):
        asked, body = _PATH.fullmatch(self.path), self._body()
        if asked["kind"] == "manifests":
            kind = json.loads(body).get("mediaType", self.headers["Content-Type"])
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            for which in (asked["which"], digest):
                self.server.stored["manifests", asked["name"], which] = (kind, body)
        else:
            data = bytes(self.server.uploads.pop(self.path.partition("?")[0])) + body
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            self.server.stored["blobs", asked["name"], digest] = ("application/octet-stream", data)
        self._answer(201, Location=self.path, Docker_Content_Digest=digest)


@contextlib.contextmanager
def serve_images():
    """Serve at a port of loopback, which engines take without TLS; yield ``HOST:PORT``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.stored, server.uploads = {}, {}
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
