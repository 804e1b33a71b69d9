"""What refused and failed calls leave on disk is bounded, and a repetition of the action hears the same."""

import asyncio
import base64
import random

import pytest

from dgm.archive.events import ModelCalled, RunStarted
from dgm.archive.journal import read_request
from dgm.archive.run import Run
from dgm.domain import Budget, TaskId
from dgm.errors import Infrastructure
from dgm.gateway import journal as journal_module
from dgm.gateway.journal import RunJournal
from dgm.gateway.normal_form import NormalForms
from dgm.gateway.withheld import is_withheld, withhold
from dgm.messages import Message, Request, RequestRefused, Role, WireProtocol, WireRequest
from tests.support.gateway.bench import ACTION, Script, chat, client, gateway
from tests.support.gateway.wire_provider import Provider, failing, lending, whole

TOO_LONG = RequestRefused(
    "context_length_exceeded", "too long", content=b'{"error": {"message": "too long"}}'
)
TEXTS = [base64.b64encode(random.Random(n).randbytes(75_000)).decode() for n in range(6)]


class Kept(RunJournal):
    """A journal that tells what was spent, as those in memory do."""

    @property
    def spent(self):
        return self._run.tree.spend


def told(folder, lent, texts=TEXTS):
    """The statuses of requests with these texts in one performance, and the run's traces in bytes."""

    async def scenario():
        with Run.open(folder, write=True) if folder.exists() else Run.create(folder, {}) as run:
            if not run.tree.tasks:
                run.append(RunStarted(Budget(), (TaskId("t"),)))
            async with lent(folder.parent / "g", journal=Kept(run)) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    async with client(opened, lease.token) as http:
                        answers = [await http.post("/chat/completions", json=chat(text)) for text in texts]
            calls = [one.event for one in run.store.read() if isinstance(one.event, ModelCalled)]
            kept = [read_request(run, call.request).messages for call in calls]
        size = sum(path.stat().st_size for path in (folder / "traces").rglob("*") if path.is_file())
        return [answer.status_code for answer in answers], size, kept

    return asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize(
    "refusing",
    [
        lambda *given, **more: lending(given[0], Provider(failing(TOO_LONG)), **more),
        lambda *given, **more: gateway(given[0], Script(TOO_LONG), **more),
    ],
)
def test_refused_requests_are_kept_whole_up_to_a_bound_and_heard_again(tmp_path, monkeypatch, refusing):
    monkeypatch.setattr(journal_module, "_REFUSED_BYTES", 250_000)
    statuses, size, kept = told(tmp_path / "run", refusing)
    assert (statuses, len(kept)) == ([400] * 6, 6)
    assert size < 250_000
    assert [TEXTS[n] in str(messages) for n, messages in enumerate(kept)] == [True, True, *[False] * 4]
    again, grown, kept = told(tmp_path / "run", refusing)
    assert (again, len(kept), grown) == ([400] * 6, 6, size)


def test_requests_that_fail_leave_next_to_nothing(tmp_path):
    away = Provider(failing(Infrastructure("away")))
    statuses, size, kept = told(tmp_path / "run", lambda *given, **more: lending(given[0], away, **more))
    assert (set(statuses), kept, size < 5_000) == ({503}, [], True)


def test_a_large_request_that_is_answered_is_kept_whole(tmp_path):
    said = lambda *given, **more: lending(given[0], Provider(whole("a"), whole("b")), **more)  # noqa: E731
    statuses, _, kept = told(tmp_path / "run", said, TEXTS[:2])
    assert (statuses, [TEXTS[n] in str(messages) for n, messages in enumerate(kept)]) == (
        [200] * 2,
        [True] * 2,
    )


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (
            WireRequest(WireProtocol.CHAT, {"messages": [1], "model": "a"}),
            WireRequest(WireProtocol.CHAT, {"messages": [1], "model": "b", "max_tokens": 7}),
            WireRequest(WireProtocol.CHAT, {"messages": [2], "model": "a"}),
        ),
        (
            Request((Message(Role.USER, "x"),), model="a"),
            Request((Message(Role.USER, "x"),), model="b", max_output_tokens=7),
            Request((Message(Role.USER, "y"),), model="a"),
        ),
    ],
)
def test_a_withheld_request_is_known_by_its_digest(one, same, other):
    record = withhold(one)
    assert (is_withheld(record), is_withheld(one)) == (True, False)
    assert NormalForms().first_difference(record, same) is None
    assert NormalForms().first_difference(same, record) is None
    assert NormalForms().first_difference(record, other)
    assert NormalForms().first_difference(record, withhold(other))
    assert NormalForms().first_difference(record, withhold(same)) is None
