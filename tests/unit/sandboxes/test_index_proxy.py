"""The way out of a build's sandbox leads to package indexes; what is asked for beside them is refused and named."""

import asyncio
import io

import pytest

from dgm.sandboxes.index_proxy import IndexProxy, Place, is_public
from tests.support.index_server import IndexServer


@pytest.fixture
def server():
    with IndexServer().serving() as index:
        index.add_wheel("tiny")
        yield index


def ask(tmp_path, request, *, own=(), public=False):
    """Returns what the proxy answers, and what it refused."""

    async def run():
        async with IndexProxy(tmp_path / "socket", frozenset(own), public=public) as proxy:
            reader, writer = await asyncio.open_unix_connection(proxy.path)
            writer.write(request.encode())
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return answer.decode("latin-1"), proxy.refused

    return asyncio.run(run())


def test_indexes_are_reached_by_the_proxy_that_the_user_has_set(tmp_path, monkeypatch):
    asked = []

    async def serve(reader, writer):
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfrom the index")
        writer.close()

    async def run():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://me:a%20b@127.0.0.1:{port}")
        async with server, IndexProxy(tmp_path / "socket", frozenset(), public=False) as proxy:
            reader, writer = await asyncio.open_unix_connection(proxy.path)
            writer.write(connect("pypi.org:443").encode())
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return answer

    assert asyncio.run(run()).endswith(b"\r\n\r\nfrom the index")
    assert asked[0].startswith(b"CONNECT pypi.org:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6YSBi\r\n" in asked[0]


def get(url):
    return f"GET {url} HTTP/1.1\r\nHost: elsewhere.example\r\nProxy-Authorization: x\r\nAccept: text/html\r\n\r\n"


def connect(target):
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"


def test_the_users_own_index_is_reached_under_its_own_name(tmp_path, server):
    answer, refused = ask(
        tmp_path, get(f"{server.url}/tiny/"), own=[Place("127.0.0.1", server.port)], public=False
    )
    assert answer.startswith(("HTTP/1.0 200", "HTTP/1.1 200"))
    assert "tiny-1.0-py3-none-any.whl" in answer
    assert refused == ""
    (asked,) = server.asked
    assert f"('Host', '127.0.0.1:{server.port}')" in asked
    assert "Proxy-" not in asked


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"]
)
@pytest.mark.parametrize("form", [get, connect])
def test_this_machine_is_never_reached(tmp_path, server, host, form, public):
    place = f"{host}:{server.port}"
    for other in (place, f"{host}:80"):
        target = f"http://{other}/secret" if form is get else other
        answer, refused = ask(tmp_path, form(target), public=public)
        assert answer.startswith("HTTP/1.1 403"), answer
        assert "no package index: refused" in refused
        (tmp_path / "socket" / "index.sock").unlink()
        (tmp_path / "socket").rmdir()
    assert server.asked == []


@pytest.mark.parametrize(
    "place",
    [
        "example.com:443",
        "pypi.org:80",
        "pypi.org:22",
        "pypi.org.example.com:443",
        "files.pythonhosted.org@h:1",
    ],
)
def test_only_indexes_are_reached_and_only_over_tls(tmp_path, place):
    answer, refused = ask(tmp_path, connect(place))
    assert answer.startswith("HTTP/1.1 403")
    assert refused


@pytest.mark.parametrize(
    "request_text", ["nonsense\r\n\r\n", get("/simple/"), "GET http:///x HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_request_to_a_proxy_is_answered(tmp_path, request_text):
    assert ask(tmp_path, request_text)[0].startswith("HTTP/1.1 502")


def test_nothing_is_sent_to_an_index(tmp_path, server):
    request = get(f"{server.url}/tiny/").replace("GET", "POST", 1)
    answer, _ = ask(tmp_path, request, own=[Place("127.0.0.1", server.port)])
    assert answer.startswith("HTTP/1.1 403")
    assert server.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("10.1.2.3", False),
        ("172.17.0.1", False),
        ("192.168.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::1", False),
        ("ff02::1", False),
        ("no address", False),
    ],
)
def test_addresses_of_the_internet_are_told_from_others(address, public):
    assert is_public(address) is public


def send(tmp_path, data, room, *, awaited=True):
    """Returns the answer to a result, and what was kept of it."""

    async def run():
        sink = io.BytesIO()
        async with IndexProxy(tmp_path / "socket", frozenset(), public=False) as proxy:
            reader, writer = await asyncio.open_unix_connection(proxy.path)
            writer.write(b"PUT /result HTTP/1.1\r\n\r\n" + data)
            writer.write_eof()
            if not awaited:
                return await reader.read(), sink.getvalue()
            with proxy.receiving(sink, room):
                return await reader.read(), sink.getvalue()

    return asyncio.run(run())


def test_a_result_is_taken_once_it_is_waited_for_and_within_its_size(tmp_path):
    data = b"x" * 200_000
    answer, kept = send(tmp_path / "a", data, 200_000)
    assert (b" 200 " in answer, kept == data) == (True, True)
    answer, kept = send(tmp_path / "b", data, 100_000)
    assert b" 403 " in answer
    assert len(kept) <= 100_000
    assert b" 403 " in send(tmp_path / "c", data, 200_000, awaited=False)[0]


def test_a_build_that_asks_for_ever_more_hosts_takes_no_more_memory(tmp_path):
    async def run():
        async with IndexProxy(tmp_path / "socket", frozenset(), public=False) as proxy:
            for number in range(1100):
                reader, writer = await asyncio.open_unix_connection(proxy.path)
                writer.write(connect(f"host-{number}:443").encode())
                await reader.read()
                writer.close()
            return proxy.refused

    assert "host-4:443 and 995 more" in asyncio.run(run())
