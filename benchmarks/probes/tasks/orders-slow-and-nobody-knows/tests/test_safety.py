"""Whatever the client logs or prints, the password and the token are not in it."""

import contextlib
import http.server
import io
import json
import logging
import threading
import unittest

import shopapi

PASSWORD, TOKEN = "correct-horse-73", "tok-5b77aa"


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


def listen():
    """Return all that is logged at any level, or printed, in a session with good and bad requests."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
    loggers = [logging.getLogger(), logging.getLogger("shopapi")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    loggers[0].addHandler(handler)
    try:
        with Shop() as address, contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            client = shopapi.Client(address)
            client.sign_in("mia", PASSWORD)
            client.order(2)
            client.cancel(3, "too late")
            with contextlib.suppress(shopapi.Refused):
                client.order(9)
            with contextlib.suppress(shopapi.Refused):
                shopapi.Client(address).sign_in("mia", PASSWORD + "?")
    finally:
        loggers[0].removeHandler(handler)
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
    return text.getvalue()


class Secrets(unittest.TestCase):
    def test_password(self):
        self.assertNotIn(PASSWORD, listen())

    def test_token(self):
        self.assertNotIn(TOKEN, listen())
