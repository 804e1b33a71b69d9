"""From a node's socket to the head's: many connections over one, which may be cut, and which only the node may make."""

import asyncio
import os
import ssl
import subprocess
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.ray import forwarder as node_side
from dgm.sandboxes.ray.door import CERTIFICATE, PRIVATE_KEY, Door, proof_of, read_certificate
from dgm.sandboxes.ray.forwarder import Forwarder


async def echo(reader, writer):
    """Answers every line with it, twice, until the other end ends."""
    while line := await reader.readline():
        writer.write(line + line)
        await writer.drain()
    writer.close()


async def ask(path, line):
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(line + b"\n")
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


@asynccontextmanager
async def way(tmp_path, certificate=None):
    """A door, its link, and a forwarder that listens."""
    server = await asyncio.start_unix_server(echo, str(tmp_path / "head.sock"))
    async with Door("127.0.0.1", certificate) as door:
        link = door.open_link(tmp_path / "head.sock")
        forwarder = Forwarder(link.key)
        try:
            await forwarder.listen(tmp_path / "node.sock")
            yield door, link, forwarder
        finally:
            await forwarder.close()
            server.close()


def test_connections_stay_apart(tmp_path):
    async def go():
        async with way(tmp_path):
            lines = [os.urandom(20_000).replace(b"\n", b".") for _ in range(30)]
            found = await asyncio.gather(*(ask(tmp_path / "node.sock", line) for line in lines))
            assert found == [line + b"\n" + line + b"\n" for line in lines]

    asyncio.run(go())


def test_a_large_answer_comes_through(tmp_path):
    async def go():
        async with way(tmp_path):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "node.sock"), limit=1 << 24)
            for _ in range(40):
                writer.write(b"x" * 60_000 + b"\n")
                await writer.drain()
                assert len(await reader.readline()) + len(await reader.readline()) == 2 * 60_001
            writer.close()

    asyncio.run(go())


def test_a_call_outlives_a_cut(tmp_path):
    async def go():
        async with way(tmp_path) as (_, link, forwarder):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "node.sock"))
            writer.write(b"before\n")
            assert await reader.readexactly(14) == b"before\nbefore\n"
            for n in range(3):
                link.pipe._writer.transport.abort()
                writer.write(b"after%d\n" % n)
                assert await reader.readexactly(14) == b"after%d\n" % n * 2
            writer.close()
            assert not forwarder.pipe.broken

    asyncio.run(go())


def test_a_socket_that_is_left_takes_no_more(tmp_path):
    async def go():
        async with way(tmp_path) as (_, _, forwarder):
            await forwarder.leave(tmp_path / "node.sock")
            with pytest.raises(OSError, match=r"No such file"):
                await ask(tmp_path / "node.sock", b"x")

    asyncio.run(go())


@pytest.mark.parametrize("change", ["token", "link"])
def test_who_has_no_token_is_turned_away(tmp_path, change, monkeypatch, caplog):
    monkeypatch.setattr(node_side, "AWAY_S", 0.6)

    async def go():
        async with way(tmp_path) as (_, link, _):
            wrong = Forwarder(replace(link.key, **{change: bytes(32)}))
            with pytest.raises(Infrastructure, match=r"does not reach the head at 127\.0\.0\.1"):
                await wrong.listen(tmp_path / "other.sock")
            await wrong.close()
            assert await ask(tmp_path / "node.sock", b"x") == b"x\nx\n"

    asyncio.run(go())
    assert "did not prove to be a node's" in caplog.text


def test_the_token_never_crosses():
    assert proof_of(b"t" * 32, b"n" * 32) != proof_of(b"t" * 32, b"m" * 32)
    assert b"t" * 32 not in proof_of(b"t" * 32, b"n" * 32)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two certificates with their keys."""
    place = tmp_path_factory.mktemp("certificates")
    for name in ("one", "two"):
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        words += [
            "-subj",
            "/CN=dgm",
            "-days",
            "2",
            "-keyout",
            f"{place}/{name}.key",
            "-out",
            f"{place}/{name}.pem",
        ]
        subprocess.run(words, check=True, capture_output=True)
    return place


def environment(place, name, key=None):
    return {CERTIFICATE: f"{place}/{name}.pem", PRIVATE_KEY: f"{place}/{key or name}.key"}


@pytest.mark.starts_processes
def test_an_encrypted_way_takes_the_heads_certificate_alone(tmp_path, certificates, monkeypatch):
    async def go():
        async with way(tmp_path, read_certificate(environment(certificates, "one"))) as (_, link, _):
            assert await ask(tmp_path / "node.sock", b"x") == b"x\nx\n"
            monkeypatch.setattr(node_side, "AWAY_S", 0.6)
            other = Forwarder(replace(link.key, certificate=(certificates / "two.pem").read_text()))
            with pytest.raises(Infrastructure, match="does not reach the head"):
                await other.listen(tmp_path / "other.sock")
            await other.close()
            assert isinstance(link.pipe._writer.get_extra_info("ssl_object"), ssl.SSLObject)

    asyncio.run(go())


@pytest.mark.starts_processes
def test_half_a_certificate_is_one_line(certificates):
    assert read_certificate({}) is None
    with pytest.raises(UserError, match=f"{CERTIFICATE} alone encrypts nothing"):
        read_certificate({CERTIFICATE: "x"})
    for wrong in (environment(certificates, "one", "two"), environment(certificates, "none")):
        with pytest.raises(UserError, match=f"{CERTIFICATE}="):
            read_certificate(wrong)
