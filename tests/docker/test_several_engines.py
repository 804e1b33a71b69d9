"""One engine at two addresses, as two: sandboxes are divided between them, and one may be lost."""

import asyncio

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes.choose import choose
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import use_engine
from dgm.sandboxes.engine_group import PLACE
from tests.docker.conftest import RUN, spec
from tests.support.engine_forward import forward_tcp, install_ssh

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.starts_processes]


@pytest.fixture
def socket_path():
    found = DockerEngine().address
    if not found.socket:
        pytest.skip(f"NOT RUN: {found} has no socket here to put behind other addresses")
    return found.socket


def test_sandboxes_are_divided_and_one_address_may_go_away(socket_path, tmp_path, monkeypatch, runner):
    pytest.importorskip("paramiko")
    install_ssh(tmp_path, socket_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    here, there = "ssh://me@far", "tcp://127.0.0.1:{port}"
    with forward_tcp(socket_path) as port:
        there = there.format(port=port)
        with use_engine([here, there]):
            group = choose("docker")

        async def run_in(number: int) -> bytes:
            async with group.open(spec()) as sandbox:
                done = await sandbox.exec(["cat"], timeout_s=60, stdin=b"%d" % number)
                return done.output

        async def run_all() -> list[bytes]:
            return await asyncio.gather(*map(run_in, range(4)))

        assert runner.run(run_all()) == [b"0", b"1", b"2", b"3"]
        assert [node.opened for node in group.nodes()] == [2, 2]

    async def run_on() -> list[bytes]:
        done = [await run_in(1)]
        # The other address leads nowhere now, and has more free places while the first has a sandbox.
        async with group.open(spec()):
            with pytest.raises(Infrastructure, match=rf"no sandbox on the engine {there}"):
                await run_in(2)
            done.append(await run_in(3))
        return done

    assert runner.run(run_on()) == [b"1", b"3"]
    assert [bool(node.problem) for node in group.nodes()] == [False, True]
    left = DockerEngine().client.api.containers(all=True, filters={"label": [PLACE, f"dgm.run={RUN}"]})
    assert left == []
