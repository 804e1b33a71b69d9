"""A socket that ssh forwards: what is said when it does not, and that no child process outlives it."""

import os
import signal
import socket
import threading
import time

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.engine_address import parse_address
from dgm.sandboxes.ssh_forward import SshForward
from tests.support.engine_forward import install_ssh

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def echo(tmp_path):
    """The path of a socket that answers with what it got."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "echo.sock"))
    listener.listen()

    def serve():
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            with one:
                one.sendall(one.recv(100))

    threading.Thread(target=serve, daemon=True).start()
    yield tmp_path / "echo.sock"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Installs a program ssh; gives the place of its log."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return lambda **given: install_ssh(folder, **given)


def ask(path) -> bytes:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(path))
        one.sendall(b"hello")
        one.shutdown(socket.SHUT_WR)
        return one.recv(100)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(pid: int) -> None:
    """Kill a child, and leave it to its owner to notice."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_socket_leads_to_the_other_host_until_it_is_closed(ssh, echo):
    log = ssh()
    forward = SshForward(parse_address(f"ssh://me@far:22{echo}", "--engine", None))
    forward.ensure()
    forward.ensure()
    assert ask(forward.socket) == b"hello"
    (line,) = log.read_text().splitlines()
    pid, *words = line.split()
    assert words[words.index("-p") + 1] == "22"
    assert words[words.index("-l") + 1] == "me"
    assert words[words.index("--") + 1] == "far"
    assert "BatchMode=yes" in words
    forward.close()
    forward.close()
    assert not is_alive(int(pid))
    assert not forward.socket.parent.exists()


def test_the_child_ends_with_the_object(ssh, echo):
    log = ssh()
    forward = SshForward(parse_address(f"ssh://far{echo}", "", None))
    forward.ensure()
    del forward
    wait_until(lambda: not is_alive(int(log.read_text().split()[0])))


def test_a_child_that_ended_is_started_again_at_the_same_socket(ssh, echo):
    log = ssh()
    forward = SshForward(parse_address(f"ssh://far{echo}", "", None))
    forward.ensure()
    before = forward.socket
    kill(int(log.read_text().split()[0]))
    forward.ensure()
    assert forward.socket == before
    assert ask(before) == b"hello"
    forward.close()


def test_what_ssh_says_is_quoted(ssh):
    ssh(refuses="me@far: Permission denied (publickey).")
    with pytest.raises(Infrastructure, match=r"cannot reach ssh://far \(--engine\): ssh says: .*publickey"):
        SshForward(parse_address("ssh://far", "--engine", None)).ensure()


def test_without_the_program_the_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="install the package 'openssh-client'"):
        SshForward(parse_address("ssh://far", "--engine", None))
