"""A call that was paid for on one day is served on another, to an agent that writes day, ids and machine into it."""

import asyncio
import random
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from dgm.archive.events import RunStarted
from dgm.archive.run import Run
from dgm.domain import Budget, TaskId
from dgm.gateway.journal import RunJournal
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, chat, client, gateway
from tests.support.gateway.wire_provider import Provider, whole

pytestmark = pytest.mark.slow

FORMS = (
    "%Y-%m-%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%a %b %d %Y",
    "%A, %B %d, %Y",
    "%B %d, %Y",
    "%a, %d %b %Y %H:%M:%S +0000",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%m/%d/%Y, %I:%M:%S %p",
)


class Kept(RunJournal):
    """A journal that tells what was spent, as those in memory do."""

    @property
    def spent(self):
        return self._run.tree.spend


def prompt(day, kernel, session, task="Fix what is due on 2027-03-01 within 30 seconds."):
    """What an agent asks on a day, on a machine, in a session."""
    dates = "\n".join(f"Today: {day:{form}}" for form in FORMS)
    seconds = random.uniform(0.01, 9)
    return (
        f"{task}\n{dates}\nOS Version: Linux {kernel}\n$ uname -r\n{kernel}\nsession {session}\n"
        f"Chunk ID: {random.randbytes(3).hex()}\nWall time: {seconds:.2f} s\n1 passed in {seconds:.2f}s\n"
        f"agentId: a{random.randbytes(8).hex()}\nduration_ms: {int(seconds * 1000)}\nresume {session}"
    )


def perform(folder, lent, bodies, volatile=(), problem=""):
    """The status codes and texts of one performance of the action."""

    async def scenario():
        with Run.open(folder, write=True) if folder.exists() else Run.create(folder, {}) as run:
            if not run.tree.tasks:
                run.append(RunStarted(Budget(), (TaskId("t"),), kernel="6.8.0-45-generic"))
            async with lent(folder.parent / "g", journal=Kept(run)) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    lease.memory.begin_job(volatile, problem)
                    async with client(opened, lease.token) as http:
                        answers = [await http.post("/chat/completions", json=body) for body in bodies]
        return [
            (one.status_code, one.json().get("choices", [{}])[0].get("message", {}).get("content"))
            for one in answers
        ]

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def to(provider):
    """Lend a provider."""
    return lambda folder, **more: gateway(folder, provider, **more)


def recorded(folder, **more):
    """Lend what was recorded, as a replay does."""
    return gateway(folder, RecordedModel(Provider.name), **more)


def body(day, kernel="6.8.0-45-generic", **more):
    return chat(prompt(day, kernel, uuid.uuid4()), prompt_cache_key=str(uuid.uuid4()), **more)


@pytest.fixture
def today():
    return datetime.now(UTC)


@pytest.fixture
def tomorrow(today, monkeypatch):
    """Move the clock, but that of the log, by a day when it is called."""

    def move():
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 86_400)
        return today + timedelta(days=1)

    return move


def test_nothing_is_bought_again_on_another_day_and_machine(tmp_path, today, tomorrow, monkeypatch):
    provider = Provider(whole("first"), whole("second"))
    assert perform(tmp_path / "run", to(provider), [body(today), body(today, top_k=2)]) == [
        (200, "first"),
        (200, "second"),
    ]
    day = tomorrow()
    monkeypatch.setattr("platform.release", lambda: "5.15.167.4-microsoft-standard-WSL2")
    again = [body(day, "5.15.167.4-microsoft-standard-WSL2"), body(day, "4.4.0-1-aws", top_k=2)]
    again[1]["messages"][0]["content"] = again[1]["messages"][0]["content"].replace(
        "\n4.4.0-1-aws\n", "\n6.8.0-45-generic\n"
    )
    assert perform(tmp_path / "run", to(provider), again) == [(200, "first"), (200, "second")]
    assert perform(tmp_path / "run", recorded, again) == [(200, "first"), (200, "second")]
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2027-03-01", "2027-03-02"),
        ("30 seconds", "31 seconds"),
        ("Fix what", "Mend what"),
        ("resume ", "resume 0198c7d2-0000-7000-8000-00000000000a, not "),
    ],
)
def test_another_fact_of_the_task_is_another_request(tmp_path, today, tomorrow, before, after):
    provider = Provider(whole("first"), whole("second"))
    perform(tmp_path / "run", to(provider), [body(today)])
    other = body(tomorrow())
    other["messages"][0]["content"] = other["messages"][0]["content"].replace(before, after)
    assert perform(tmp_path / "run", to(provider), [other]) == [(200, "second")]


def test_each_of_two_requests_that_differ_in_an_id_of_the_task_gets_its_own_answer(tmp_path):
    provider = Provider(whole("first"), whole("second"))
    one, other = (chat(f"Read record {uuid.uuid4()}.") for _ in range(2))
    perform(tmp_path / "run", to(provider), [one, other])
    assert perform(tmp_path / "run", to(provider), [other, one]) == [(200, "second"), (200, "first")]


def test_a_paid_reply_about_one_id_of_the_statement_does_not_answer_for_another(tmp_path):
    provider = Provider(whole("first"), whole("second"))
    one, other = uuid.uuid4(), uuid.uuid4()
    problem = f"Merge the records {one} and {other}."
    perform(tmp_path / "run", to(provider), [chat(f"Read {one}.")], problem=problem)
    asked = [chat(f"Read {other}."), chat(f"Read {one}.")]
    assert perform(tmp_path / "run", to(provider), asked, problem=problem) == [
        (200, "second"),
        (200, "first"),
    ]


def test_an_agents_own_pattern_is_left_out(tmp_path):
    provider = Provider(whole("first"), whole("second"))
    perform(tmp_path / "run", to(provider), [chat("nonce=17 hi")])
    assert perform(tmp_path / "run", recorded, [chat("nonce=3 hi")])[0][0] == 503
    assert perform(tmp_path / "run", recorded, [chat("nonce=3 hi")], ("nonce=[0-9]+",)) == [(200, "first")]
