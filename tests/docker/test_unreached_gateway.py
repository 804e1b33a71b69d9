"""No agent is started in a sandbox that does not reach the gateway: that is the engine's failure and no verdict."""

import asyncio

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.errors import Infrastructure
from dgm.protocols import Job, JobKind
from dgm.sandboxes import relay
from dgm.worker.workbench import SandboxWorkbench
from tests.docker.conftest import spec
from tests.support.gateway.bench import ACTION, gateway

TOML = Entry(b'[agent]\ncommand = ["sh", "-c", "echo mended > /work/repo/a.txt"]\ncheck = ["true"]\n')


class SeenElsewhere:
    """A gateway whose socket is not where sandboxes look for it."""

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


def test_a_gateway_that_is_not_reached_gives_no_verdict(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(relay, "_CONNECT_S", 0.2)
    found = {
        "docker": r"/run/dgm/gateway\.sock .* nobody answers",
        "bubblewrap": r"there is no /run/dgm/gate",
    }
    with pytest.raises(Infrastructure, match=f"does not reach the gateway: {found[engine.name]}"):
        patch(engine, tmp_path, elsewhere=True)


def test_a_gateway_that_is_reached_starts_the_agent(engine, tmp_path):
    assert b"+mended" in patch(engine, tmp_path, elsewhere=False)
