"""Checks of an agent before a search: what is its fault and what is not."""

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dgm.config import LimitSettings, Settings
from dgm.domain import Entry
from dgm.errors import Infrastructure, UserError
from dgm.messages import WireProtocol, WireRequest
from dgm.protocols import Completed, DryCalls, Job, JobKind, Work
from dgm.worker.agent_check import (
    allow_seed_start,
    find_difference,
    find_start_seconds,
    follow_seed_start,
    rehearse,
    zone_of_another_day,
)

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


@pytest.mark.parametrize(("given", "seed"), [(10.0, 120.0), (300.0, 300.0)])
def test_the_seed_has_two_minutes_or_what_the_settings_say(given, seed):
    assert allow_seed_start(LimitSettings(check_s=given)).check_s == seed


@pytest.mark.parametrize(("measured", "children"), [(0.2, 10.0), (3.4, 11.0), (7.0, 21.0)])
def test_children_of_a_slow_seed_have_three_times_its_start(measured, children):
    assert follow_seed_start(LimitSettings(check_s=10.0), measured).check_s == children


def test_where_no_processor_time_is_known_the_clock_counts():
    assert find_start_seconds(Completed(0, b"", seconds=2.0)) == 2.0
    assert find_start_seconds(Completed(0, b"", seconds=2.0, processor_s=1.0)) == 1.0


MANIFEST = b"""[agent]
command = ["run"]
check = ["check"]
volatile = ["ticket-[0-9]+"]
"""
JOB = Job(JobKind.SOLVE, "Mend it.", {"agent.toml": Entry(MANIFEST)}, {}, "python", "/work/repo", 9.0)


def work(*texts):
    bodies = [{"messages": [{"role": "user", "content": text}]} for text in texts]
    requests = tuple(WireRequest(WireProtocol.CHAT, body) for body in bodies)
    return Work({}, b"", Completed(0, b""), dry_calls=DryCalls({}, requests=requests))


@pytest.mark.parametrize("hour", range(24))
def test_it_is_another_day_in_the_other_zone(hour):
    moment = datetime(2026, 11, 28, hour, 59, tzinfo=UTC)
    assert moment.astimezone(ZoneInfo(zone_of_another_day(moment.timestamp()))).day != moment.day


def test_what_a_replay_on_another_day_does_not_compare_is_no_difference():
    now = datetime.now(UTC)
    here = f"{now:%A, %B %d, %Y} {now:%c} UTC <zone>Etc/UTC</zone> ticket-1"
    there = now + timedelta(days=1)
    other = f"{there:%A, %B %d, %Y} {there:%c} +14 <zone>Pacific/Kiritimati</zone> ticket-20"
    assert find_difference(JOB, work(here, "title"), work("title", other)) == ""


def test_the_first_request_that_a_replay_would_not_find_is_shown():
    assert find_difference(JOB, work("a", "day 332"), work("a", "day 333")).startswith(
        "call 2: messages[0].content: "
    )
    assert find_difference(JOB, work("a"), work("a", "b")) == "call 2: one more than before"
    assert find_difference(JOB, work("a", "b"), work("a")) == ""
    assert find_difference(JOB, work(str(time.time())), work(str(time.time() + 1)))
