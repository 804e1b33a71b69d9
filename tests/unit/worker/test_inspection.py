"""The comparison of an agent's requests with those of a repetition."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dgm.domain import Entry
from dgm.messages import WireProtocol, WireRequest
from dgm.protocols import Completed, DryCalls, Job, JobKind, Work
from dgm.worker.inspection import find_difference, zone_of_another_day

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
