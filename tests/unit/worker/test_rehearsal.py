"""A rehearsal tells what the agent is to blame for from what its sandbox is."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dgm.config import Settings
from dgm.domain import Entry
from dgm.errors import Infrastructure, UserError
from dgm.worker.rehearsal import rehearse

AGENT = {"agent.toml": Entry(b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n')}


class NoSandbox:
    """An engine whose sandboxes do not open; it notes what it was asked to remove."""

    name = "none"

    def __init__(self):
        self.reaped = []

    @asynccontextmanager
    async def open(self, spec):
        raise Infrastructure("the disk is full")
        yield

    async def reap(self, labels):
        self.reaped.append(dict(labels))


def test_a_sandbox_that_fails_says_nothing_of_the_agent():
    engine = NoSandbox()
    with pytest.raises(
        Infrastructure, match=r"mine: whether the agent can start was not found out.*disk is full"
    ):
        asyncio.run(rehearse("mine", AGENT, engine, Settings()))
    assert [set(labels) for labels in engine.reaped] == [{"dgm.run", "dgm.host"}]


def test_what_is_no_agent_is_the_users_to_mend():
    with pytest.raises(UserError, match=r"mine: the agent cannot start.*no agent.toml"):
        asyncio.run(rehearse("mine", {}, NoSandbox(), Settings()))
