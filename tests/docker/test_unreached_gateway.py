"""No agent is started in a sandbox that does not reach the gateway: that is the engine's failure and no verdict."""

import asyncio

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.errors import Infrastructure
from dgm.protocols import Job, JobKind
from dgm.worker.workbench import SandboxWorkbench
from tests.docker.conftest import spec
from tests.support.gateway.bench import ACTION, gateway

TOML = Entry(b'[agent]\ncommand = ["sh", "-c", "echo mended > /work/repo/a.txt"]\ncheck = ["true"]\n')


class SeenElsewhere:
    """A gateway whose folder the engine sees as an empty one: it has other files than dgm does."""

    def __init__(self, opened, folder):
        self._opened, self.folder = opened, folder

    def __getattr__(self, name):
        return getattr(self._opened, name)


def patch(engine, tmp_path, *, elsewhere):
    async def scenario():
        job = Job(
            JobKind.SOLVE,
            "p",
            {"agent.toml": TOML},
            {"a.txt": Entry(b"broken\n")},
            "python",
            "/work/repo",
            20.0,
        )
        async with gateway(tmp_path / "g") as opened:
            (tmp_path / "empty").mkdir(mode=0o755)
            reached = SeenElsewhere(opened, tmp_path / "empty") if elsewhere else opened
            return (
                await SandboxWorkbench(engine.open, reached, ACTION, spec(), LimitSettings()).work(job)
            ).patch

    return asyncio.run(asyncio.wait_for(scenario(), 120))


def test_an_engine_that_sees_other_files_gives_no_verdict(engine, tmp_path):
    with pytest.raises(
        Infrastructure, match=r"does not reach the gateway: there is no /run/dgm/gateway\.sock"
    ):
        patch(engine, tmp_path, elsewhere=True)


def test_an_engine_that_sees_the_same_files_starts_the_agent(engine, tmp_path):
    assert b"+mended" in patch(engine, tmp_path, elsewhere=False)
