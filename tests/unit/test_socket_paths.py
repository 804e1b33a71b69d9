"""Sockets are bound by their own path, and only a long one by another way."""

import socket

import pytest

from dgm import processes
from dgm.errors import Infrastructure
from dgm.processes import short_address


@pytest.fixture
def long(tmp_path):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    return folder / "gateway.sock"


def test_a_path_is_used_as_it_is(tmp_path):
    path = tmp_path / "s"
    with short_address(path) as address:
        assert address == str(path)


def test_a_long_path_can_be_bound(long):
    with socket.socket(socket.AF_UNIX) as listener, short_address(long) as address:
        listener.bind(address)
    assert long.is_socket()


def test_without_descriptors_in_proc_a_long_path_is_refused(long, monkeypatch):
    monkeypatch.setattr(processes, "_DESCRIPTORS", long / "proc")
    with pytest.raises(Infrastructure, match="set TMPDIR to a shorter folder"), short_address(long):
        pass
