"""How an agent's program ended, as the workbench tells it."""

import asyncio
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from dgm.config import LimitSettings
from dgm.domain import ActionId, Entry
from dgm.protocols import Completed, Job, JobKind, SandboxSpec
from dgm.search.workbench import SandboxWorkbench

SOURCE = {"agent.toml": Entry(b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n')}


class Place:
    """A sandbox and a gateway in one: the agent leaves everything as it was and ends as told."""

    folder, socket_name = Path("/nowhere"), "gateway.sock"
    token, failure, conversation, calls = "dgm-0", None, (), 0

    def __init__(self, completed):
        self.completed = completed

    @contextmanager
    def lend(self, action, role):
        yield self

    @asynccontextmanager
    async def open(self, spec):
        yield self

    async def put(self, files, target):
        pass

    async def exec(self, argv, **_):
        return self.completed

    async def get(self, source, **_):
        return {"a.py": Entry(b"1")}


@pytest.mark.parametrize(
    ("completed", "late"),
    [
        (Completed(124, b"", seconds=6.1), True),
        (Completed(124, b"", seconds=2.0), False),
        (Completed(1, b"", seconds=7.0), False),
        (Completed(124, b"", timed_out=True, seconds=21.0), True),
    ],
)
def test_a_time_limit_that_the_launcher_enforced_is_a_time_out(completed, late):
    place = Place(completed)
    bench = SandboxWorkbench(place.open, place, ActionId(1), SandboxSpec("python"), LimitSettings())
    job = Job(JobKind.SOLVE, "p", SOURCE, {"a.py": Entry(b"1")}, "python", "/work/repo", 6.0)
    work = asyncio.run(bench.work(job))
    assert work.completed.timed_out is late
    assert work.patch == b""
