"""Connections to the gateway: from a sandbox before it is there, and from an agent that opens too many."""

import socket
import threading

import pytest

from dgm.gateway import launcher
from dgm.gateway.launcher import Forwarder


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
