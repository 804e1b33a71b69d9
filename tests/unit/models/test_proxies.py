"""Which proxy an address has, and real proxies that forward or refuse."""

import importlib.util
import socket
import threading
from contextlib import contextmanager

import aiohttp
import pytest

from dgm.errors import UserError
from dgm.models.addresses import find_proxy
from dgm.models.faults import UserMustAct, judge_transport
from tests.support.models.connecting import clear_environment, connect, post
from tests.support.models.recording_server import Answer, recording, said

URL = "https://api.provider.example/v1"
HTTP = "http://proxy.example:3128"
BODY = {"model": "m", "messages": []}
NEEDS_SOCKS = pytest.mark.skipif(importlib.util.find_spec("aiohttp_socks") is None, reason="needs dgm[socks]")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    clear_environment(monkeypatch)


@pytest.mark.parametrize(
    ("environment", "right"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": HTTP}, "HTTPS_PROXY"),
        ({"https_proxy": HTTP}, "https_proxy"),
        ({"HTTP_PROXY": HTTP}, ""),
        ({"ALL_PROXY": HTTP}, "ALL_PROXY"),
        ({"ALL_PROXY": "http://other.example", "HTTPS_PROXY": HTTP}, "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "  "}, ""),
    ],
)
def test_variable_is_chosen_by_the_scheme(environment, right, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_proxy(URL)[0] == right


def test_no_proxy_names_hosts_that_have_none(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", HTTP)
    monkeypatch.setenv("NO_PROXY", "other.example,.provider.example,server.example:8000")
    assert find_proxy(URL) == ("", "")
    assert find_proxy("https://server.example:8000/v1") == ("", "")
    assert find_proxy("https://server.example:8001/v1") == ("HTTPS_PROXY", HTTP)
    assert find_proxy("https://elsewhere.example/v1") == ("HTTPS_PROXY", HTTP)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.8.9.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_loopback_has_no_proxy(host, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", HTTP)
    assert find_proxy(f"http://{host}:8000/v1") == ("", "")


@pytest.mark.parametrize(
    "value", ["http://user:hush@[::1", "ftp://user:hush@p.example", "socks4://p.example"]
)
def test_malformed_proxy_is_one_line_that_names_the_variable(value, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(UserError) as caught:
        connect("openai-compatible/m", compatible={"base_url": URL})
    assert str(caught.value).startswith("HTTPS_PROXY")
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def ask_by(monkeypatch, variable, proxy, url="http://provider.example/v1"):
    monkeypatch.setenv(variable, proxy)
    return post(connect("openai-compatible/m", compatible={"base_url": url}), "/chat/completions", BODY)


def test_request_goes_through_the_proxy(monkeypatch):
    with recording(lambda _: said({"ok": 1})) as (url, asked):
        response = ask_by(monkeypatch, "HTTP_PROXY", url.replace("//", "//user:hush%21@"))
    assert response.json() == {"ok": 1}
    assert asked[0].target == "http://provider.example/v1/chat/completions"
    assert asked[0].headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("scheme", ["https"])
def test_proxy_that_refuses_is_named_without_its_password(monkeypatch, scheme):
    with recording(lambda _: Answer(407, b"")) as (url, _), refuse_connect() as tunnel:
        place = (url if scheme == "http" else tunnel).removeprefix("http://")
        with pytest.raises(aiohttp.ClientHttpProxyError) as caught:
            ask_by(
                monkeypatch,
                f"{scheme.upper()}_PROXY",
                f"http://user:hush-hush@{place}",
                f"{scheme}://provider.example/v1",
            )
    fault = judge_transport(caught.value)
    assert isinstance(fault, UserMustAct) and "407" in fault.message and "HTTPS_PROXY" in fault.message
    assert "hush" not in fault.message


@NEEDS_SOCKS
def test_request_goes_through_a_socks_proxy_that_resolves_the_name(monkeypatch):
    with socks_server(b'{"ok": 1}') as (url, seen):
        response = ask_by(monkeypatch, "ALL_PROXY", url)
    assert response.json() == {"ok": 1}
    assert seen == [b"provider.example"]


@contextmanager
def accepting(serve):
    """A server on the loopback; ``serve`` has each of its connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept():
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    serve(peer)

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def refuse_connect():
    def serve(peer):
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")

    with accepting(serve) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def socks_server(content):
    seen = []

    def serve(peer):
        peer.recv(64)
        peer.sendall(b"\x05\x00")
        wish = peer.recv(512)
        seen.append(wish[5 : 5 + wish[4]])
        peer.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        peer.recv(65536)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        peer.sendall(head % len(content) + content)

    with accepting(serve) as port:
        yield f"socks5h://127.0.0.1:{port}", seen
