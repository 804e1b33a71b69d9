"""One engine behind addresses of every kind: each call and each program's streams go there, and nowhere else."""

import contextlib
import hashlib
import json
import os
import signal

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import recipes
from dgm.sandboxes.docker import DockerEngine
from tests.docker.conftest import spec
from tests.support.engine_forward import (
    forward_tcp,
    install_ssh,
    make_certificates,
    server_context,
)

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.starts_processes]

INPUT = bytes(range(256)) * 2_000


@pytest.fixture(scope="module")
def socket_path():
    found = DockerEngine().address
    if not found.socket:
        pytest.skip(f"NOT RUN: {found} has no socket here to put behind other addresses")
    return found.socket


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without a configuration, whose default socket leads nowhere near the engine."""
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / ".docker"))
    return tmp_path


def echo_input(runner) -> tuple[str, bytes]:
    """Return the address of the engine that the environment names, and what a program there did with its input."""
    engine = DockerEngine()

    async def work() -> bytes:
        async with engine.open(spec()) as sandbox:
            done = await sandbox.exec(["cat"], timeout_s=60, stdin=INPUT)
        return done.output

    try:
        return engine.address.url, runner.run(work())
    finally:
        engine.close()


def test_by_tcp(socket_path, home, monkeypatch, runner):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with forward_tcp(socket_path) as port:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
        assert echo_input(runner) == (f"tcp://127.0.0.1:{port}", INPUT)


def test_by_tcp_with_tls(socket_path, home, monkeypatch, runner):
    make_certificates(home / "certificates")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(home / "certificates"))
    with forward_tcp(socket_path, server_context(home / "certificates")) as port:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
        assert echo_input(runner) == (f"tcp://127.0.0.1:{port}", INPUT)


def test_by_a_context_with_its_certificates(socket_path, home, monkeypatch, runner):
    ident = hashlib.sha256(b"far").hexdigest()
    make_certificates(home / ".docker" / "contexts" / "tls" / ident / "docker")
    context = server_context(home / ".docker" / "contexts" / "tls" / ident / "docker")
    with forward_tcp(socket_path, context) as port:
        meta = home / ".docker" / "contexts" / "meta" / ident / "meta.json"
        meta.parent.mkdir(parents=True)
        endpoint = {"Host": f"tcp://127.0.0.1:{port}", "SkipTLSVerify": False}
        meta.write_text(json.dumps({"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
        (home / ".docker" / "config.json").write_text('{"currentContext": "far"}')
        assert echo_input(runner) == (f"tcp://127.0.0.1:{port}", INPUT)


@pytest.fixture
def ssh(socket_path, home, monkeypatch):
    """A program ``ssh`` that leads to the engine; the file in which it notes its arguments."""
    pytest.importorskip("paramiko")
    log = install_ssh(home, socket_path)
    monkeypatch.setenv("PATH", str(home), prepend=":")
    monkeypatch.setenv("DGM_ENGINE", "ssh://me@far")
    return log


def test_by_ssh(ssh, runner):
    assert echo_input(runner) == ("ssh://me@far", INPUT)
    calls = {tuple(line.split()[1:]) for line in ssh.read_text().splitlines()}
    assert calls == {("-l", "me", "-p", "22", "--", "far", "docker", "system", "dial-stdio")}


def test_calls_by_ssh_share_connections_and_one_that_broke_is_made_again(ssh, runner):
    with contextlib.closing(DockerEngine()) as engine:

        async def work() -> int:
            async with engine.open(spec()) as sandbox:
                return (await sandbox.exec(["true"], timeout_s=60)).exit_code

        assert runner.run(work()) == 0
        before = [int(line.split()[0]) for line in ssh.read_text().splitlines()]
        assert engine.task_images.has("dgm/none:1") is False
        assert len(ssh.read_text().splitlines()) == len(before), "each call started an ssh"
        for pid in before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(Infrastructure):
            engine.task_images.has("dgm/none:1")
        for _ in range(10):
            with contextlib.suppress(Infrastructure):
                assert runner.run(work()) == 0
                break
        else:
            pytest.fail("the engine was not reached again")


def test_images_are_listed_by_ssh(ssh):
    assert recipes.load("python").tag in DockerEngine().task_images.list_recipes()
