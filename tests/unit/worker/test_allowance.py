"""A child may cost at most what its setting says, however many jobs and questions it takes to make it."""

import asyncio
from contextlib import contextmanager

import pytest

from dgm.config import LimitSettings
from dgm.domain import Usage
from dgm.errors import AgentFault
from dgm.gateway.lease import CallLimits
from dgm.gateway.server import MOST_LOST_S
from dgm.messages import Message, Reply, Request, RequestRefused, Role
from dgm.protocols import Job, JobKind, SandboxSpec
from dgm.worker.session import call_limits
from dgm.worker.workbench import Allowance, SandboxWorkbench
from tests.support.agent_place import IDLE, SOURCE, Place
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, gateway

pytestmark = pytest.mark.slow

JOB = Job(JobKind.IMPROVE, "p", SOURCE, SOURCE, "python", "/work/agent", 300.0)


def question(number):
    return Request((Message(Role.USER, f"question {number}"),), max_output_tokens=1000)


async def answered(bench, most=6):
    """How many questions were answered before one was refused, and why that was."""
    for number in range(most):
        try:
            await bench.ask(question(number), "improve")
        except RequestRefused as refusal:
            return number, refusal.code
    return most, ""


def bench_of(opened, limits, place=None, clock=None):
    allowance = Allowance(limits, clock) if clock else Allowance(limits)
    return SandboxWorkbench(
        place.open if place else None, opened, ACTION, SandboxSpec("python"), limits, None, allowance
    )


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({"child_calls": 3}, 3),
        ({"child_tokens": 250}, 3),  # the third call begins with 50 tokens left, and is answered
        ({"child_usd": 0.0114}, 3),  # an answer costs 0.000145, its worst case is about 0.011
        ({}, 6),
        ({"child_calls": 50, "usd": 0.5}, 6),
        ({"calls": 3}, 3),
        ({"calls": 3, "child_calls": 5}, 3),
        ({"tokens": 250}, 3),
        ({"usd": 0.0114}, 3),
    ],
)
def test_questions_end_where_the_child_has_had_its_share(tmp_path, limits, count):
    async def scenario():
        script, journal = Script(Reply("x", usage=Usage(1, 95, 5))), MemoryJournal()
        own = LimitSettings(**limits)
        async with gateway(tmp_path / "g", script, journal, limits=call_limits(own)) as opened:
            found = await answered(bench_of(opened, own))
        assert found == (count, "action_limit_exceeded" if count < 6 else "")
        assert len(journal.paid) == count

    asyncio.run(scenario())


def test_two_questions_at_once_cannot_both_take_the_rest(tmp_path):
    async def scenario():
        journal = MemoryJournal()
        async with gateway(tmp_path / "g", Script(), journal) as opened:
            bench = bench_of(opened, LimitSettings(child_calls=1))
            both = (bench.ask(question(n), "improve") for n in range(2))
            said = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(one).__name__ for one in said) == ["Reply", "RequestRefused"]
        assert len(journal.paid) == 1

    asyncio.run(scenario())


class Busy(Place):
    """Each job is answered two calls of 10 tokens, and takes 40 s."""

    calls, usage = 2, Usage(2, 15, 5, 0.01)

    def __init__(self):
        super().__init__(folders=[SOURCE])
        self.now, self.lent, self.times = 0.0, [], []

    @contextmanager
    def lend(self, action, role, limits=None, heard=None, kind=""):
        self.lent.append(limits)
        yield self

    async def exec(self, argv, *, timeout_s, **_):
        self.times.append(timeout_s - MOST_LOST_S - 15.0)
        self.now += 40.0
        return IDLE


def test_jobs_share_what_a_child_may_take():
    place = Busy()
    limits = LimitSettings(child_calls=5, child_tokens=100, child_usd=0.05)
    bench = bench_of(place, limits, place, lambda: place.now)
    for _ in range(3):
        asyncio.run(bench.work(JOB))
    assert [lent.calls for lent in place.lent] == [5, 3, 1]
    assert [lent.tokens for lent in place.lent] == [100, 80, 60]
    assert [lent.usd for lent in place.lent] == pytest.approx([0.05, 0.04, 0.03])
    assert place.times == [300.0] * 3


def test_a_job_has_the_time_that_is_left_and_none_is_begun_without():
    place = Busy()
    bench = bench_of(place, LimitSettings(child_s=75), place, lambda: place.now)
    for _ in range(2):
        asyncio.run(bench.work(JOB))
    assert place.times == [75.0, 35.0]
    with pytest.raises(AgentFault, match="the 75 s that a child may take are over") as caught:
        asyncio.run(bench.work(JOB))
    assert caught.value.stage == "time"
    with pytest.raises(RequestRefused, match="the 75 s that a child may take are over"):
        asyncio.run(bench.ask(question(1)))
    assert len(place.times) == 2


def test_vetting_has_as_much_again_and_not_what_is_said_of_making():
    place = Busy()
    limits = LimitSettings(calls=3, child_calls=1, child_tokens=5, child_usd=0.001, child_s=1)
    vetting = Allowance.of_vetting(limits)
    for _ in range(2):
        vetting.count(place)
    assert vetting.seconds(300.0) == 300.0
    assert vetting.rest(call_limits(LimitSettings(calls=5, usd=1.0))) == CallLimits(
        calls=1, tokens=4_000_000 - 40, usd=pytest.approx(0.98)
    )
