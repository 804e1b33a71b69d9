"""Connections to the gateway: from a sandbox before it is there, and from an agent that opens too many."""

import asyncio
import socket
import threading

import pytest

from dgm.gateway import launcher, sockets
from dgm.gateway.launcher import Forwarder
from tests.support.gateway.bench import ACTION, ask, client, gateway


def test_a_connection_waits_for_a_gateway_that_is_late(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:

        def appear():
            listener.bind("g")
            listener.listen(1)

        late = threading.Timer(0.1, appear)
        late.start()
        with Forwarder("g")._connect() as far:
            assert far.getpeername() == "g"
        late.join()


def test_a_connection_to_no_gateway_fails_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "CONNECT_S", 0.1)
    with pytest.raises(FileNotFoundError):
        Forwarder(str(tmp_path / "g"))._connect()


@pytest.mark.slow
def test_the_oldest_idle_connection_ends_where_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(sockets, "CONNECTIONS", 3)
    monkeypatch.chdir(tmp_path)

    async def scenario():
        async with gateway(tmp_path / "g") as opened:
            idle = [await asyncio.open_unix_connection(f"g/{opened.socket_name}") for _ in range(3)]
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    status, _ = await ask(http)
            assert status == 200
            assert await asyncio.wait_for(idle[0][0].read(), 30) == b""
            assert [reader.at_eof() for reader, _ in idle] == [True, False, False]
            for _, writer in idle:
                writer.close()

    asyncio.run(scenario())
