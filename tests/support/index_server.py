"""A package index on loopback, which notes all that it is asked for."""

import contextlib
import http.server
import io
import threading
import zipfile
from importlib.metadata import distribution


class IndexServer:
    """Serves wheels by the simple protocol; ``asked`` are the paths and headers of all requests."""

    def __init__(self):
        self.wheels = {}
        self.asked = []

    def add_wheel(self, name, version="1.0", needs=(), program=""):
        """Adds a package with one module and one command: of Python, or a program of the shell."""
        info, data = f"{name}-{version}.dist-info", io.BytesIO()
        with zipfile.ZipFile(data, "w") as wheel:
            wheel.writestr(f"{name}.py", f"VERSION = {version!r}\ndef tell(): print(VERSION)\n")
            required = "".join(f"Requires-Dist: {each}\n" for each in needs)
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
            )
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            if program:
                file = zipfile.ZipInfo(f"{name}-{version}.data/scripts/{name}")
                file.external_attr = 0o100755 << 16
                wheel.writestr(file, program)
            else:
                wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:tell\n")
            wheel.writestr(f"{info}/RECORD", "".join(f"{each},,\n" for each in [*wheel.namelist(), info]))
        self.wheels.setdefault(name, {})[f"{name}-{version}-py3-none-any.whl"] = data.getvalue()

    def add_installed(self, *names):
        """Adds packages as they are installed here, without their commands."""
        for name in names:
            found, data = distribution(name), io.BytesIO()
            with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as wheel:
                for file in found.files:
                    kept = file.suffix != ".pyc" and ".." not in file.parts
                    if kept and file.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                        wheel.write(file.locate(), str(file))
                record = next(str(file) for file in found.files if file.name == "RECORD")
                wheel.writestr(record, "".join(f"{each},,\n" for each in [*wheel.namelist(), record]))
            self.wheels[name] = {f"{name}-{found.version}-py3-none-any.whl": data.getvalue()}

    @property
    def port(self):
        return self._server.server_port

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/simple"

    def answer(self, path):
        _, _, name, file = [*path.split("/"), "", ""][:4]
        files = self.wheels.get(name, {})
        if file:
            return files.get(file)
        links = "".join(f'<a href="/simple/{name}/{each}">{each}</a>' for each in files)
        return f"<html>{links}</html>".encode() if files else None

    @contextlib.contextmanager
    def serving(self):
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.append(f"{self.path} {self.headers.items()}")
                data = index.answer(self.path)
                self.send_response(200 if data else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data or b"")

            do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815  (the names of the library)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
