"""From a node's socket to the head's: a cut is no end, and only the node may connect; ``test_relay`` has the rest."""

import asyncio
import contextlib
import os
from contextlib import asynccontextmanager

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import relay
from dgm.sandboxes.ray.connection import HeadListener, NodeForwarder, proof_of


async def echo(reader, writer):
    """Answer every line with it, twice, until the other end ends."""
    while line := await reader.readline():
        writer.write(line + line)
        await writer.drain()
    writer.close()


async def ask(path, data):
    reader, writer = await asyncio.open_unix_connection(str(path), limit=1 << 24)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


@asynccontextmanager
async def way(tmp_path, serve=echo):
    """A gateway, the head's listener, and a node's forwarder."""
    server = await asyncio.start_unix_server(serve, str(tmp_path / "head.sock"), limit=1 << 24)
    async with HeadListener("127.0.0.1", tmp_path / "head.sock") as head:
        forwarder = NodeForwarder(head.address, tmp_path / "node.sock")
        async with forwarder:
            yield head, forwarder
    server.close()


def run(work):
    asyncio.run(asyncio.wait_for(work(), 30))


def test_connections_stay_apart(tmp_path):
    async def go():
        async with way(tmp_path) as (_, forwarder):
            lines = [os.urandom(20_000).replace(b"\n", b".") + b"\n" for _ in range(30)]
            answers = await asyncio.gather(*(ask(tmp_path / "node.sock", line) for line in lines))
            assert answers == [line + line for line in lines]
            assert not forwarder.cut.done()

    run(go)


def test_an_agent_that_leaves_is_no_cut(tmp_path):
    async def stall(reader, writer):
        writer.write(b"x" * 1_000_000)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()
        writer.close()

    ended = asyncio.Event()

    async def go():
        async with way(tmp_path, stall) as (_, forwarder):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "node.sock"))
            await reader.readexactly(100)
            writer.transport.abort()
            await ended.wait()
            assert not forwarder.cut.done()

    run(go)


@pytest.mark.parametrize("side", ["the head ends", "the gateway is away"])
def test_a_cut_is_noticed(tmp_path, side, monkeypatch):
    async def away(_):
        raise ConnectionRefusedError("nobody listens")

    async def go():
        async with way(tmp_path) as (head, forwarder):
            if side == "the gateway is away":
                monkeypatch.setattr(relay, "connect", away)
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "node.sock"))
            if side == "the head ends":
                writer.write(b"a\n")
                assert await reader.readexactly(4) == b"a\na\n"
                await head.__aexit__()
            assert "was cut" in await forwarder.cut
            writer.close()

    run(go)


def test_a_head_that_is_not_reached_opens_no_sandbox(tmp_path):
    async def go():
        async with way(tmp_path) as (head, _):
            address = head.address._replace(port=1)
            with pytest.raises(Infrastructure, match=r"the node does not reach the head at 127\.0\.0\.1:1: "):
                await NodeForwarder(address, tmp_path / "other.sock").__aenter__()

    run(go)


def test_who_has_no_secret_is_turned_away(tmp_path, caplog):
    async def go():
        async with way(tmp_path) as (head, forwarder):
            address = head.address._replace(secret=bytes(32))
            async with NodeForwarder(address, tmp_path / "other.sock") as other:
                await other.cut
                with pytest.raises(OSError, match="refused"):
                    await ask(tmp_path / "other.sock", b"x\n")
            assert await ask(tmp_path / "node.sock", b"x\n") == b"x\nx\n"
            assert not forwarder.cut.done()

    run(go)
    assert "did not prove to be a node's" in caplog.text


def test_the_secret_never_crosses():
    assert proof_of(b"t" * 32, b"n" * 32) != proof_of(b"t" * 32, b"m" * 32)
    assert b"t" * 32 not in proof_of(b"t" * 32, b"n" * 32)
