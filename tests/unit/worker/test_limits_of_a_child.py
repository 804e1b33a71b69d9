"""Making a child has the limits of one action, however many questions it takes; its judge has them once more."""

import asyncio

import pytest

from dgm.archive.events import ActionStarted, RunStarted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, Entry, Expand, TaskId
from dgm.messages import Message, Request, RequestRefused, Role
from dgm.protocols import Proposal, SandboxSpec
from dgm.search.prepare import AgentIndex
from dgm.worker.session import Session, call_limits
from dgm.worker.worker import Worker
from tests.support.gateway.bench import MemoryJournal, gateway

pytestmark = pytest.mark.starts_processes


def source(steps):
    code = f"def work(job, model):\n    for step in range({steps}):\n        model.ask(job, step)\n"
    return {
        "agent.toml": Entry(b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n'),
        "a.py": Entry(code.encode()),
    }


class NoRoom:
    """A child that passes needs a sandbox; these never get so far."""

    def open(self, spec):
        raise AssertionError("no sandbox is needed")


class Asking:
    """An operator that asks five times, as often as it is let, and proposes a near copy of its sibling."""

    refused = 0

    async def make(self, brief, bench):
        for number in range(5):
            try:
                await bench.ask(Request((Message(Role.USER, f"question {number}"),)), "improve")
            except RequestRefused:
                self.refused += 1
        return Proposal(source(30), "asked", b"")


@pytest.fixture
def run(tmp_path):
    """The seed and one child of it."""
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(), (TaskId("t"),)))
        seed = made.repository.commit(source(10), ())
        made.append(made.birth(Born((), "seed", seed, ""), ActionId(0)))
        child = made.repository.commit(source(20), [seed])
        made.append(made.birth(Born((AgentId(0),), "asking", child, ""), ActionId(0)))
        yield made


class NoTasks:
    def tasks(self, split):
        return []


@pytest.mark.parametrize(("calls", "making", "judging"), [(2, 2, 2), (4, 4, 2), (80, 5, 2)])
def test_questions_of_making_and_of_vetting_are_each_counted_together(run, tmp_path, calls, making, judging):
    settings = Settings(
        limits={"calls": calls},
        vetting={"syntax": False},
        gates={"novelty": "model", "novelty_threshold": 0.01},
    )
    what, operator, journal = Expand((AgentId(0),), "asking"), Asking(), MemoryJournal()
    run.append(ActionStarted(ActionId(1), what))

    async def expanded():
        limits = call_limits(settings.limits)
        async with gateway(tmp_path / "g", journal=journal, limits=limits) as opened:
            session = Session(NoRoom(), opened, SandboxSpec("python"), settings.limits)
            worker = Worker(run, session, NoTasks(), {"asking": operator}, settings, AgentIndex(run))
            return await worker.perform(ActionId(1), what)

    assert asyncio.run(expanded()).stage == "novelty"
    asked = [call.role for call in journal.paid.values()]
    # An answer that cannot be read is asked for once more; the same one again ends the asking.
    assert (asked.count("improve"), asked.count("diagnose")) == (making, judging)
    assert operator.refused == 5 - making
