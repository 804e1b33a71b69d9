"""A server with a bad certificate must not be read."""

import http.server
import pathlib
import ssl
import threading
import unittest

import feeds

HERE = pathlib.Path(__file__).parent


class Server:
    """A server on this machine that answers with a list of statuses, the last one again and again."""

    def __init__(self, statuses=(200,), certificate=None):
        answers, self.requests = list(statuses), 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.requests += 1
                status = answers.pop(0) if len(answers) > 1 else answers[0]
                handler.send_response(status)
                handler.end_headers()
                handler.wfile.write(b'{"items": [1, 2]}')

            def log_message(handler, *words):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(server, request, address):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(HERE / certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.server.server_port}/feed"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Certificates(unittest.TestCase):
    def test_unknown_certificate(self):
        with Server(certificate="unknown.pem") as server:
            with self.assertRaises(Exception):
                feeds.fetch(server.url)
            self.assertEqual(server.requests, 0)

    def test_certificate_of_another_host(self):
        with Server(certificate="other.pem") as server:
            with self.assertRaises(Exception):
                feeds.fetch(server.url, ca_file=str(HERE / "authority.pem"))
            self.assertEqual(server.requests, 0)
