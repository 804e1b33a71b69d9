"""The name that this machine's processes give it."""

import ctypes
import socket
import sys

import pytest

from dgm.this_machine import machine_name


@pytest.fixture(autouse=True)
def _anew():
    machine_name.cache_clear()
    yield
    machine_name.cache_clear()


def test_it_is_the_name_of_the_host():
    assert machine_name() == socket.gethostname()


def test_a_mac_keeps_its_name_in_another_network(monkeypatch):
    class System:
        """A system that knows the id of its hardware."""

        @staticmethod
        def gethostuuid(buffer, _wait):
            buffer[:] = bytes(range(16))
            return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: System)
    assert machine_name() == "mac-00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_a_mac_without_an_id_has_the_name_of_the_host(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    assert machine_name() == socket.gethostname()
