"""An agent's own image and its packages are beside another image's files, in a sandbox of either engine."""

import asyncio
import time

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.meta.contract import read_contract
from dgm.protocols import Mount
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.image_store import AGENT
from dgm.sandboxes.volumes import remove_volume
from dgm.worker.supplies import AgentSupplies, find_home
from dgm.worker.workbench import SandboxWorkbench
from tests.docker.conftest import RUN, Inside
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, gateway

HELLO = b"""#!/usr/bin/env python3
import sys, json
print("hi", json.dumps(1), sys.prefix)
"""
SOURCE = {
    "agent.toml": Entry(
        b'[agent]\ncommand = ["hello"]\ncheck = ["hello", "--check"]\nimage = "Dockerfile"\n'
        b'protected = ["hello", "none"]\n'
    ),
    # Without git no sandbox can be made of it: its files are shown beside those of another image.
    "Dockerfile": Entry(b"FROM dgm/python\nCOPY none /usr/bin/git\nCOPY hello /usr/local/bin/hello\n"),
    "none": Entry(b""),
    "hello": Entry(HELLO, 0o100755),
}


@pytest.mark.docker
def test_a_program_of_an_image_without_git_starts_beside_another_image_and_the_use_is_noted(engine, tmp_path):
    if not isinstance(engine, DockerEngine):
        with pytest.raises(UserError, match="has no images but those of recipes"):
            find_home(engine, read_contract(SOURCE), SOURCE)
        return
    began = time.time()

    async def scenario():
        supplies = AgentSupplies(engine, SOURCE)
        spec = await supplies.home_spec({"dgm.run": RUN})
        async with gateway(tmp_path / "gateway", Script(), MemoryJournal()) as opened:
            bench = SandboxWorkbench(engine.open, opened, ACTION, spec, LimitSettings(), supplies=supplies)
            return await bench.check(SOURCE)

    done = asyncio.run(scenario())
    assert (done.exit_code, done.output) == (0, b"hi 1 /opt/dgm-runtime\n")
    assert DockerEngine().task_images.list_images([AGENT])[-1].used >= began - 1


@pytest.fixture
def constant(engine, tmp_path):
    """A folder that never changes; no volume of it is left."""
    tmp_path.chmod(0o755)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("told = 1\n")
    yield Mount(tmp_path, "/opt/dgm-packages", digest=f"{RUN} {tmp_path.name}")
    if isinstance(engine, DockerEngine):
        for volume in engine.client.volumes.list(filters={"label": f"dgm.volume={tmp_path.name}"}):
            remove_volume(engine.client, volume.name)


def test_a_folder_that_never_changes_can_be_read_and_not_written(inside: Inside, constant):

    async def work(sandbox):
        look = "cat /opt/dgm-packages/lib/a.py; touch /opt/dgm-packages/new 2>/dev/null || echo refused"
        return await sandbox.exec(["sh", "-c", look], timeout_s=60)

    for _ in range(2):
        assert inside(work, mounts=[constant]).output == b"told = 1\nrefused\n"
