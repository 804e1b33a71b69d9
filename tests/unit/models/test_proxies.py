"""Which proxy an address has, and real proxies that forward or refuse."""

import importlib.util
import socket
import threading
from contextlib import contextmanager

import httpx2
import openai
import pytest

from dgm.errors import UserError
from dgm.models.proxies import find_proxy
from tests.support.models.connecting import clear_environment, connect, post
from tests.support.models.recording_server import Answer, recording, said

URL = "https://api.provider.example/v1"
HTTP = "http://proxy.example:3128"
BODY = {"model": "m", "messages": []}
NEEDS_SOCKS = pytest.mark.skipif(importlib.util.find_spec("socksio") is None, reason="needs httpx2[socks]")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    clear_environment(monkeypatch)


def found(url=URL, **environment):
    proxy = find_proxy(url, environment)
    return proxy and (proxy.variable, proxy.url)


@pytest.mark.parametrize(
    ("environment", "right"),
    [
        ({}, None),
        ({"HTTPS_PROXY": HTTP}, ("HTTPS_PROXY", HTTP)),
        ({"https_proxy": HTTP}, ("https_proxy", HTTP)),
        ({"HTTP_PROXY": HTTP}, None),
        ({"ALL_PROXY": HTTP}, ("ALL_PROXY", HTTP)),
        ({"ALL_PROXY": "http://other.example", "HTTPS_PROXY": HTTP}, ("HTTPS_PROXY", HTTP)),
        ({"HTTPS_PROXY": "http://other.example", "https_proxy": HTTP}, ("https_proxy", HTTP)),
        ({"HTTPS_PROXY": HTTP, "https_proxy": ""}, None),
        ({"HTTPS_PROXY": "proxy.example:3128"}, ("HTTPS_PROXY", HTTP)),
        ({"HTTPS_PROXY": "  "}, None),
    ],
)
def test_variable_is_chosen_by_the_scheme(environment, right):
    assert found(**environment) == right


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.8.9.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_loopback_has_no_proxy(host):
    assert found(f"http://{host}:8000/v1", HTTP_PROXY=HTTP, ALL_PROXY="nonsense://") is None


@pytest.mark.parametrize(
    ("url", "no_proxy", "excluded"),
    [
        (URL, "*", True),
        (URL, "provider.example", True),
        (URL, ".provider.example", True),
        (URL, "*.provider.example", True),
        (URL, "API.Provider.Example.", True),
        (URL, "a.example, api.provider.example", True),
        (URL, "a.example api.provider.example", True),
        (URL, "api.provider.example:443", True),
        (URL, "api.provider.example:8443", False),
        (URL, "vider.example", False),
        (URL, "other.example", False),
        ("https://10.1.2.3/v1", "10.0.0.0/8", True),
        ("https://10.1.2.3/v1", "10.1.2.3", True),
        ("https://10.1.2.3:8443/v1", "10.1.2.3:8443", True),
        ("https://10.1.2.3/v1", "192.168.0.0/16", False),
        ("https://[fd00::1]/v1", "fd00::/8", True),
        ("https://[fd00::1]/v1", "[fd00::1]", True),
        ("https://110.1.2.3/v1", "10.1.2.3", False),
    ],
)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_no_proxy_excludes(url, no_proxy, excluded, variable):
    assert (found(url, HTTPS_PROXY=HTTP, **{variable: no_proxy}) is None) is excluded


@pytest.mark.parametrize(
    "value",
    [
        "http://",
        "http://user:hush@",
        "http://p:port",
        "http://[::1",
        "ftp://p.example",
        "http://a b",
        "socks4://p.example",
    ],
)
def test_malformed_proxy_is_one_line_that_names_the_variable(value):
    with pytest.raises(UserError) as caught:
        find_proxy(URL, {"HTTPS_PROXY": value})
    assert str(caught.value).startswith("HTTPS_PROXY")
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


@NEEDS_SOCKS
@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("socks5://p.example:1080",) * 2,
        ("socks5h://p.example",) * 2,
        ("socks://p.example:1/", "socks5://p.example:1"),
    ],
)
def test_socks_proxies_are_taken(value, right):
    assert found(ALL_PROXY=value) == ("ALL_PROXY", right)


def ask_by(monkeypatch, variable, proxy, url="http://provider.example/v1"):
    monkeypatch.setenv(variable, proxy)
    return post(connect("openai-compatible/m", compatible={"base_url": url}), "/chat/completions", BODY)


def test_request_goes_through_the_proxy(monkeypatch):
    with recording(lambda _: said({"ok": 1})) as (url, asked):
        response = ask_by(monkeypatch, "HTTP_PROXY", url.replace("//", "//user:hush%21@"))
    assert response.json() == {"ok": 1}
    assert asked[0].target == "http://provider.example/v1/chat/completions"
    assert asked[0].headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_that_refuses_is_named_without_its_password(monkeypatch, scheme):
    with recording(lambda _: Answer(407, b"")) as (url, _), refuse_connect() as tunnel:
        place = (url if scheme == "http" else tunnel).removeprefix("http://")
        with pytest.raises(openai.APIConnectionError) as caught:
            ask_by(
                monkeypatch,
                f"{scheme.upper()}_PROXY",
                f"http://user:hush-hush@{place}",
                f"{scheme}://provider.example/v1",
            )
    cause = caught.value.__cause__
    assert isinstance(cause, httpx2.ProxyError)
    assert f"the proxy {place} (from {scheme.upper()}_PROXY): 407" in str(cause)
    assert "hush" not in str(cause)


def test_proxy_that_is_away_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(openai.APIConnectionError) as caught:
        ask_by(monkeypatch, "all_proxy", f"http://127.0.0.1:{port}")
    assert f"the proxy 127.0.0.1:{port} (from all_proxy)" in str(caught.value.__cause__)


@NEEDS_SOCKS
def test_request_goes_through_a_socks_proxy_that_resolves_the_name(monkeypatch):
    with socks_server(b'{"ok": 1}') as (url, seen):
        response = ask_by(monkeypatch, "ALL_PROXY", url)
    assert response.json() == {"ok": 1}
    assert seen == [b"provider.example"]


@NEEDS_SOCKS
def test_malformed_proxy_is_refused_when_the_model_is_opened(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://[::1")
    with pytest.raises(UserError, match="ALL_PROXY"):
        connect("openai-compatible/m", compatible={"base_url": "http://provider.example/v1"})
    connect("openai-compatible/m", compatible={"base_url": "http://127.0.0.1:9/v1"})


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
