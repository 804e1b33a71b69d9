"""The identity that this machine's processes give it."""

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.archive.lock import _FIRST_PID_NAMESPACE as OUTSIDE
from dgm.archive.lock import _find_linux_id, boot, machine_name, pid_space

ONE, TWO = "0123456789abcdef" * 2, "fedcba9876543210" * 2
CONTAINER = OUTSIDE + 7


@pytest.fixture(autouse=True)
def _anew():
    for function in (machine_name, boot, pid_space):
        function.cache_clear()
    yield
    for function in (machine_name, boot, pid_space):
        function.cache_clear()


@pytest.fixture
def file(tmp_path):
    """The file with the machine's id."""
    (tmp_path / "machine-id").write_text(f"{ONE}\n")
    return tmp_path / "machine-id"


def rename(monkeypatch, name):
    monkeypatch.setattr(socket, "gethostname", lambda: name)


def test_a_machine_keeps_its_id_under_another_name_and_differs_from_others_of_its_name(file, monkeypatch):
    before = _find_linux_id([file], OUTSIDE)
    assert ONE not in before
    rename(monkeypatch, "by-dhcp")
    assert _find_linux_id([file], OUTSIDE) == before
    file.write_text(TWO)
    assert _find_linux_id([file], OUTSIDE) != before


def test_containers_of_one_image_differ_and_stay_the_same_when_they_start_again(file, monkeypatch):
    ids = []
    for name in ("3f1c", "3f1c", "77aa"):
        rename(monkeypatch, name)
        ids.append(_find_linux_id([file], CONTAINER + len(ids)))
    assert ids[0] == ids[1]
    assert len({*ids, _find_linux_id([file], OUTSIDE)}) == 3


@pytest.mark.parametrize("content", ["", "uninitialized\n", "no id"])
def test_a_file_without_an_id_is_passed_over(file, tmp_path, content):
    (tmp_path / "dbus").write_text(ONE)
    usual = _find_linux_id([file], CONTAINER)
    file.write_text(content)
    assert _find_linux_id([file, tmp_path / "none"], CONTAINER) == ""
    assert _find_linux_id([file, tmp_path / "dbus"], CONTAINER) == usual


def test_without_any_id_names_count_on_one_machine_only(monkeypatch):
    def absent(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    rename(monkeypatch, "a-host")
    assert (machine_name(), boot()) == ("a-host", "")
    assert pid_space().startswith("a-host/")


LOOK = (
    "from dgm.archive.lock import pid_space, machine_name, boot; print(pid_space(), machine_name(), boot())"
)


@pytest.mark.starts_processes
def test_another_namespace_of_pids_is_another_space_of_the_same_boot():
    look = [sys.executable, "-c", LOOK]
    inside = ["unshare", "--pid", "--fork", "--mount-proc", *look]
    if os.geteuid() or not shutil.which("unshare") or sys.platform != "linux":
        pytest.skip("NOT RUN: only root of a Linux can make a namespace of pids")
    here, there = (
        subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        for words in (look, inside)
    )
    assert (here[0] != there[0], here[1] != there[1]) == (True, True)
    assert here[2] == there[2] != ""


def test_a_mac_has_the_id_of_its_hardware_or_the_name_of_the_host(monkeypatch):
    class System:
        """A system that knows the id of its hardware."""

        @staticmethod
        def gethostuuid(buffer, _wait):
            buffer[:] = bytes(range(16))
            return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: System)
    assert machine_name() == "mac-00010203-0405-0607-0809-0a0b0c0d0e0f"
    machine_name.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    assert machine_name() == socket.gethostname()
