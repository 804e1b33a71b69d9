"""Local servers: real ones on free ports, good, silent and strange."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dgm.models import auto
from dgm.models.auto import parse_chat_models, probe_servers

MODELS = {"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3-coder:30b"}, {"id": "llama3"}]}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine may hold up a server of these tests for longer than a person is made to wait."""
    monkeypatch.setattr(auto, "WAIT_S", 20.0)


@contextmanager
def server(body=b"", status=200):
    """A server that gives ``body`` to every GET; yields its base URL and the paths it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/v1", asked
        listening.shutdown()
        thread.join()


def test_answering_server_is_found_with_its_chat_models():
    with server(json.dumps(MODELS).encode()) as (url, asked):
        assert probe_servers([url]) == {url: ("qwen3-coder:30b", "llama3")}
    assert asked == ["/v1/models"]


@pytest.mark.parametrize(
    ("body", "status"), [(json.dumps(MODELS).encode(), 401), (b"<html>", 200), (b"", 500)]
)
def test_other_servers_are_no_model_servers(body, status):
    with server(body, status) as (url, _):
        assert probe_servers([url]) == {}


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://[::1", "ftp://127.0.0.1/"])
def test_what_is_no_address_answers_nothing(url):
    assert probe_servers([url]) == {}


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b'{"data": {}}',
        b'{"data": [1, {"id": 5}, {"id": "bad\\u001b[31m"}, {}]}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_strange_answers_offer_nothing(answer):
    assert parse_chat_models(answer) == ()
