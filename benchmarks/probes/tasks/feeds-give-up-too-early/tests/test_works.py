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


class Retries(unittest.TestCase):
    def test_busy_twice(self):
        with Server([503, 503, 200]) as server:
            self.assertEqual(feeds.fetch(server.url, pause_s=0.01), {"items": [1, 2]})
            self.assertEqual(server.requests, 3)

    def test_busy_for_good(self):
        with Server([503]) as server:
            with self.assertRaises(feeds.FeedError) as caught:
                feeds.fetch(server.url, pause_s=0.01)
            self.assertEqual((caught.exception.status, server.requests), (503, 3))

    def test_number_of_tries(self):
        with Server([503, 503, 503, 503, 200]) as server:
            self.assertEqual(feeds.fetch(server.url, tries=5, pause_s=0.0), {"items": [1, 2]})

    def test_other_errors_at_once(self):
        with Server([404, 200]) as server:
            with self.assertRaises(feeds.FeedError):
                feeds.fetch(server.url)
            self.assertEqual(server.requests, 1)

    def test_own_authority(self):
        with Server(certificate="partner.pem") as server:
            found = feeds.fetch(server.url, ca_file=str(HERE / "authority.pem"))
            self.assertEqual(found, {"items": [1, 2]})
