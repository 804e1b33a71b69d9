import http.server
import json
import threading
import unittest

import shopapi

PASSWORD, TOKEN = "open-sesame-41", "tok-8d1f0c"


class Shop:
    """A shop on this machine with the orders 1 to 7."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                good = handler.path != "/session" or body["password"] == PASSWORD
                handler.answer(200 if good else 403, {"token": TOKEN} if good else {})

            def do_GET(handler):
                known = handler.headers["Authorization"] == f"Bearer {TOKEN}"
                number = int(handler.path.rpartition("/")[2])
                handler.answer((200 if number < 8 else 404) if known else 401, {"number": number})

            def answer(handler, status, body):
                handler.send_response(status)
                handler.end_headers()
                handler.wfile.write(json.dumps(body).encode())

            def log_message(handler, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Records(unittest.TestCase):
    def setUp(self):
        shop = Shop()
        self.client = shopapi.Client(shop.__enter__())
        self.addCleanup(shop.__exit__)

    def test_order(self):
        self.client.sign_in("mia", PASSWORD)
        with self.assertLogs("shopapi", "INFO") as caught:
            self.client.order(7)
        (record,) = caught.records
        self.assertEqual(record.levelname, "INFO")
        self.assertRegex(record.getMessage(), r"GET /orders/7 200 in \d+(\.\d+)? ms")

    def test_error(self):
        self.client.sign_in("mia", PASSWORD)
        with self.assertLogs("shopapi", "INFO") as caught, self.assertRaises(shopapi.Refused):
            self.client.order(8)
        (record,) = caught.records
        self.assertEqual(record.levelname, "WARNING")
        self.assertRegex(record.getMessage(), r"GET /orders/8 404 in \d+(\.\d+)? ms")

    def test_every_request(self):
        with self.assertLogs("shopapi", "INFO") as caught:
            self.client.sign_in("mia", PASSWORD)
            self.client.cancel(3, "too late")
        self.assertEqual([record.getMessage().split()[1] for record in caught.records], ["/session", "/orders/3/cancel"])

    def test_answers(self):
        self.client.sign_in("mia", PASSWORD)
        self.assertEqual(self.client.order(5), {"number": 5})
