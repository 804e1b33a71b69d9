"""Nothing of the host's is in view of a sandbox: variables, command lines, the proxies of a Docker client."""

import asyncio
import json
import os
import socket

import pytest

from dgm.errors import UserError
from dgm.protocols import Mount
from dgm.sandboxes.choose import choose
from tests.docker.conftest import Inside, spec

CANARY = "canary-of-the-host"
LOOK = """
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try:
            print(open(f"/proc/{pid}/{name}", "rb").read())
        except OSError:
            pass
    for name in ("cwd", "root", *(f"fd/{fd}" for fd in range(64))):
        try:
            print(os.readlink(f"/proc/{pid}/{name}"))
        except OSError:
            pass
"""


async def look(sandbox):
    done = await sandbox.exec(["python3", "-c", LOOK], timeout_s=60)
    assert done.exit_code == 0
    assert b"LOOK" in done.output or b"os.listdir" in done.output
    return done.output.decode()


def check(seen):
    assert CANARY not in seen
    assert "memfd" not in seen
    assert "dgm-sandboxes" not in seen


def test_no_variable_path_or_descriptor_of_the_host_is_seen(inside: Inside, monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_API_KEY", CANARY)
    shown = tmp_path / CANARY
    shown.mkdir()
    check(inside(look, mounts=[Mount(shown, "/run/dgm/here")]))


def test_name_servers_and_domains_of_the_host_are_not_seen(inside: Inside):
    async def work(sandbox):
        return await sandbox.exec(["sh", "-c", "cat /etc/resolv.conf /etc/hosts /etc/hostname"], timeout_s=60)

    lines = [line.split() for line in inside(work).output.decode().splitlines()]
    assert {line[1] for line in lines if line[:1] == ["nameserver"]} <= {"127.0.0.1"}
    assert [line for line in lines if line[:1] in (["search"], ["domain"]) and line[1:] != ["."]] == []
    assert socket.gethostname() not in {word for line in lines for word in line} - {"localhost", "sandbox"}


def test_variables_of_a_program_have_no_say_in_the_helpers_that_are_root(inside: Inside):
    """The loader writes a file per process that listens to its variables, as that process's user."""

    async def work(sandbox):
        listens = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": "/tmp/loaded", "EMPTY": "", "LINES": "a\nb=c"}
        done = await sandbox.exec(["sh", "-c", 'echo "$EMPTY$LINES"'], timeout_s=60, env=listens)
        assert done.output == b"a\nb=c\n"
        return await sandbox.exec(["sh", "-c", "stat -c %u /tmp/loaded.* | sort -u; id -u"], timeout_s=60)

    users = inside(work).output.split()
    assert len(users) == 2
    assert users[0] == users[1]


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["A", "A\0--bind\0/\0/host\0B"])
def test_a_zero_byte_in_a_variable_is_refused(ordinary, name):
    async def work():
        async with ordinary.open(spec()) as sandbox:
            await sandbox.exec(["true"], timeout_s=60, env={name: "x\0--bind\0/\0/host"})

    with pytest.raises(UserError, match="zero byte"):
        asyncio.run(work())


@pytest.mark.sandbox
def test_nor_in_a_sandbox_of_an_ordinary_user(ordinary, monkeypatch, tmp_path):
    """There bubblewrap's own first process belongs to the user of the program."""
    monkeypatch.setenv("SECRET_API_KEY", CANARY)

    async def work():
        async with ordinary.open(spec(mounts=[Mount(tmp_path, "/run/dgm/here")])) as sandbox:
            return await look(sandbox)

    seen = asyncio.run(work())
    check(seen)
    assert "--args" in seen  # bubblewrap's first process could be read


@pytest.mark.docker
@pytest.mark.sandbox
def test_proxies_of_the_docker_client_stay_with_it(monkeypatch, tmp_path):
    proxy = f"http://user:{CANARY}@127.0.0.1:9"
    proxies = {"default": {"httpProxy": proxy, "httpsProxy": proxy, "noProxy": "localhost"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", os.fspath(tmp_path))
    try:
        engine = choose("docker")
    except UserError as error:
        pytest.skip(f"NOT RUN with docker: {error}")

    async def work():
        async with engine.open(spec()) as sandbox:
            return await look(sandbox)

    seen = asyncio.run(work())
    assert "proxy" not in seen.lower()
    check(seen)
