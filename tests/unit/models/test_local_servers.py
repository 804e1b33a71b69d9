"""Local servers: real ones on free ports, good, silent and strange."""

import json
import socket
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dgm.models import local_servers
from dgm.models.local_servers import USUAL, parse_chat_models, probe

MODELS = {"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3-coder:30b"}, {"id": "llama3"}]}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine may hold up a server of these tests for longer than a person is made to wait."""
    monkeypatch.setattr(local_servers, "WAIT_S", 20.0)


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
        assert probe([url]) == {url: ("qwen3-coder:30b", "llama3")}
    assert asked == ["/v1/models"]


def test_several_are_asked_and_keep_their_order():
    with ExitStack() as stack:
        body = json.dumps(MODELS).encode()
        urls = [stack.enter_context(server(body))[0] for _ in range(3)]
        assert list(probe(urls)) == urls


def test_nobody_there_is_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert probe([f"http://127.0.0.1:{port}/v1"]) == {}


@pytest.mark.parametrize(
    ("body", "status"), [(json.dumps(MODELS).encode(), 401), (b"<html>", 200), (b"", 500)]
)
def test_other_servers_are_no_model_servers(body, status):
    with server(body, status) as (url, _):
        assert probe([url]) == {}


@pytest.mark.slow
def test_silent_server_does_not_hold_up_the_others(monkeypatch):
    monkeypatch.setattr(local_servers, "WAIT_S", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, server(json.dumps(MODELS).encode()) as (url, _):
        mute = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        assert list(probe([mute, url])) == [url]


def test_proxies_of_the_environment_are_passed_by(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with server(json.dumps(MODELS).encode()) as (url, _):
        assert list(probe([url])) == [url]


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://[::1", "ftp://127.0.0.1/"])
def test_what_is_no_address_answers_nothing(url):
    assert probe([url]) == {}


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


def test_usual_ports_are_those_of_ollama_llama_cpp_and_vllm():
    assert [(one.name, one.base_url.rpartition(":")[2]) for one in USUAL] == [
        ("Ollama", "11434/v1"),
        ("llama.cpp", "8080/v1"),
        ("vLLM", "8000/v1"),
    ]
