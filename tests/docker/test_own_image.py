"""An agent's own image and its packages are beside another image's files, in a sandbox of either engine."""

import asyncio
import platform
import struct
import time

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.protocols import Mount
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.filled_volumes import collect_volumes
from dgm.worker.supplies import AgentSupplies
from dgm.worker.workbench import SandboxWorkbench
from tests.docker.conftest import RUN, Inside
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, gateway

SAYS_HI = bytes.fromhex("b801000000bf01000000488d3510000000ba030000000f05b83c00000031ff0f05") + b"hi\n"
"""Instructions of an x86-64: write three bytes, then exit."""


def static_program(code):
    """A program without a loader: a header, one segment that holds all of it, the instructions."""
    size, base = 120 + len(code), 0x400000
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return ident + header + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000) + code


SOURCE = {
    "agent.toml": Entry(
        b'[agent]\ncommand = ["hello"]\ncheck = ["hello", "--check"]\nimage = "Dockerfile"\nprotected = ["hello"]\n'
    ),
    "Dockerfile": Entry(b"FROM scratch\nCOPY hello /usr/bin/hello\n"),
    "hello": Entry(static_program(SAYS_HI), 0o100755),
}


@pytest.mark.docker
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is for another machine")
def test_a_program_of_an_image_that_holds_nothing_else_starts_and_the_use_is_noted(engine, tmp_path):
    began = time.time()

    async def scenario():
        supplies = AgentSupplies(engine, SOURCE)
        spec = await supplies.home_spec({"dgm.run": RUN})
        async with gateway(tmp_path / "gateway", Script(), MemoryJournal()) as opened:
            bench = SandboxWorkbench(engine.open, opened, ACTION, spec, LimitSettings(), supplies=supplies)
            return await bench.check(SOURCE)

    done = asyncio.run(scenario())
    assert (done.exit_code, done.output) == (0, b"hi\n")
    assert DockerEngine().agent_images()[-1].used >= began - 1


@pytest.fixture
def constant(engine, tmp_path):
    """A folder that never changes; no volume of it is left."""
    tmp_path.chmod(0o755)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("told = 1\n")
    yield Mount(tmp_path, "/opt/dgm-packages", digest=f"{RUN} {tmp_path.name}")
    if isinstance(engine, DockerEngine):
        collect_volumes(engine.client, "dgm.shown", lambda name: name != tmp_path.name)


def test_a_folder_that_never_changes_can_be_read_and_not_written(inside: Inside, constant):

    async def work(sandbox):
        look = "cat /opt/dgm-packages/lib/a.py; touch /opt/dgm-packages/new 2>/dev/null || echo refused"
        return await sandbox.exec(["sh", "-c", look], timeout_s=60)

    for _ in range(2):
        assert inside(work, mounts=[constant]).output == b"told = 1\nrefused\n"
