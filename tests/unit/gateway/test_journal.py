"""Calls in the log: durable in time, many in one commit, all or nothing, and folded in order."""

import asyncio
import base64
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import threading
import zlib
from contextlib import closing
from dataclasses import replace

import pytest

from dgm.archive.events import CallBooked, CallStarted, ModelCalled, RunPaused, RunStarted
from dgm.archive.journal import CallReader, CallWriter
from dgm.archive.run import Run
from dgm.domain import Budget, TaskId, Usage
from dgm.errors import DgmError, Infrastructure
from dgm.gateway.journal import RunJournal
from dgm.messages import (
    BegunCall,
    CallKey,
    PaidCall,
    RequestRefused,
    WireProtocol,
    WireReply,
    WireRequest,
)
from tests.support.gateway.bench import ACTION, Script, chat, client, gateway
from tests.support.gateway.wire_provider import Provider, failing, whole

MOST = Usage(1, 100, 50, 0.5)
REPLY = WireReply(WireProtocol.CHAT, b'{"said": "yes"}', False, Usage(1, 10, 5, 0.25))
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(), (TaskId("t"),)))
        yield made


def asked(*texts):
    return WireRequest(WireProtocol.CHAT, {"messages": [{"role": "user", "content": text} for text in texts]})


def begun(number, *texts):
    return BegunCall(CallKey(ACTION, number), "m", "solve", asked(*texts), MOST)


def paid(number, *texts, reply=REPLY):
    return PaidCall(CallKey(ACTION, number), "m", "solve", asked(*texts), reply, 0.5)


def all_at_once(*calls):
    async def go():
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(asyncio.wait_for(go(), 60))


def kinds(run):
    return [type(item.event) for item in run.store.read(1)]


def stored(run):
    """Number → whether there is a reply, of the rows of a log, as another program sees them."""
    with closing(sqlite3.connect(run.folder / "run.db")) as log:
        return dict(log.execute("SELECT number, reply IS NOT NULL FROM calls ORDER BY number").fetchall())


def exchanges(run):
    journal = RunJournal(run)
    return journal.recall(ACTION, journal.numbers(ACTION)[1])[0]


# Death


def _die(folder, answered):
    async def go():
        with Run.open(folder, write=True) as run:
            journal = RunJournal(run)
            await journal.begin(begun(1, "hi"))
            if answered:
                await journal.record(paid(1, "hi"))
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(go())


def test_a_call_whose_end_is_recorded_is_not_booked(run):
    """A job may end while the refusal of its call becomes durable, after tries that were billed."""
    journal = RunJournal(run)
    all_at_once(journal.begin(begun(1, "hi")))
    all_at_once(journal.record(paid(1, "hi")))
    journal.book(ACTION, 1, "m", "solve", MOST)
    assert run.tree.spend == REPLY.usage
    assert kinds(run) == [CallStarted, ModelCalled]


@pytest.mark.starts_processes
@pytest.mark.parametrize("answered", [False, True])
def test_a_killed_process_leaves_what_was_begun_or_answered(run, answered):
    run.close()
    process = FORK.Process(target=_die, args=(run.folder, answered))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with Run.open(run.folder, write=True) as again:
        RunJournal(again).book_cut_calls()
        assert again.tree.spend == (REPLY.usage if answered else MOST)
        assert [one.request for one in RunJournal(again).cut_calls(ACTION)] == (
            [] if answered else [asked("hi")]
        )
        assert [(one.request, one.reply) for one in exchanges(again)] == (
            [(asked("hi"), REPLY)] if answered else []
        )


def test_a_cut_off_call_is_settled_once(run):
    """Equal calls that are answered together all find it unsettled."""
    journal = RunJournal(run)
    all_at_once(journal.begin(begun(1, "hi")))
    journal.lose(begun(1, "hi"))
    (cut,) = journal.cut_calls(ACTION)
    less = replace(cut, booked=Usage(0, -90, 0, -0.25))
    all_at_once(*(journal.record(paid(number, "hi"), [less]) for number in (2, 3)))
    assert run.tree.spend == Usage(3, 30, 60, 0.75)


# Commits


def test_calls_that_wait_together_are_one_commit(run, monkeypatch):
    journal, commits, append = RunJournal(run), [], run.store.append_many

    def counted(events, write=None):
        commits.append(len(events))
        return append(events, write)

    monkeypatch.setattr(run.store, "append_many", counted)
    all_at_once(*(journal.begin(begun(number, f"{number}")) for number in range(1, 61)))
    all_at_once(*(journal.record(paid(number, f"{number}")) for number in range(1, 61)))
    assert sum(commits) == 120
    assert len(commits) <= 6
    assert stored(run) == dict.fromkeys(range(1, 61), 1)
    assert [one.request for one in exchanges(run)] == [asked(f"{n}") for n in range(1, 61)]


def test_the_event_loop_goes_on_while_the_disk_is_slow(run, monkeypatch):
    journal, append, let, ticks = RunJournal(run), run.store.append_many, threading.Event(), []

    def slow(events, write=None):
        assert let.wait(30), "the loop stands still"
        return append(events, write)

    async def scenario():
        recording = asyncio.create_task(journal.record(paid(1, "hi")))
        for _ in range(5):
            await asyncio.sleep(0.01)
            ticks.append(recording.done())
        let.set()
        await recording

    monkeypatch.setattr(run.store, "append_many", slow)
    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert ticks == [False] * 5


def test_what_threads_commit_is_folded_in_the_order_of_the_log(run):
    thread = threading.Thread(target=run.commit, args=([RunPaused("one"), RunPaused("two")],))
    before = run.tree.seq
    thread.start()
    thread.join()
    assert run.tree.seq == before
    folded = []
    apply, run.tree.apply = run.tree.apply, lambda item: (folded.append(item.event), apply(item))
    run.append(RunPaused("three"))
    assert [event.reason for event in folded] == ["one", "two", "three"]
    assert run.tree.seq == run.store.last == before + 3


def test_calls_and_other_events_at_once_keep_the_order(run):
    journal = RunJournal(run)

    async def other():
        for number in range(20):
            run.append(RunPaused(f"{number}"))
            await asyncio.sleep(0)

    all_at_once(other(), *(journal.record(paid(number, f"{number}")) for number in range(1, 41)))
    assert run.tree.seq == run.store.last == 61
    assert len(list(run.store.read())) == 61
    assert run.tree.spend.calls == 40


# Failing


def fill(run, pages):
    """Let the log grow by so many pages only."""
    writer = run.store._writer
    (used,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {used + pages}")


def test_on_a_full_disk_nothing_is_half_recorded_and_it_goes_on_later(run):
    journal, noise = RunJournal(run), base64.b64encode(random.Random(0).randbytes(300_000)).decode()
    asyncio.run(journal.begin(begun(1, noise)))
    before = run.tree.seq
    fill(run, 2)
    failed = all_at_once(*(journal.record(paid(number, f"{number}", noise)) for number in (2, 3, 4)))
    assert [type(error) for error in failed] == [Infrastructure] * 3
    assert (run.tree.seq, run.store.last, stored(run)) == (before, before, {1: 0})
    fill(run, 100_000)
    all_at_once(journal.record(paid(1, noise)), journal.record(paid(2, noise, "more")))
    assert [one.request for one in exchanges(run)] == [asked(noise), asked(noise, "more")]


def test_a_call_that_cannot_be_recorded_leaves_no_row_and_fails_no_other(run):
    journal = RunJournal(run)
    asyncio.run(journal.record(paid(1, "one")))
    unfit = paid(2, "two", reply=WireReply(WireProtocol.CHAT, b"", object(), Usage()))
    again, broken, fine = all_at_once(
        journal.record(paid(1, "other")), journal.record(unfit), journal.record(paid(3, "one", "three"))
    )
    assert (type(again), type(broken), fine) == (DgmError, TypeError, None)
    assert stored(run) == {1: 1, 3: 1}
    assert [one.request for one in exchanges(run)] == [asked("one"), asked("one", "three")]


def test_a_cancelled_caller_waits_until_its_call_is_durable(run):
    journal = RunJournal(run)

    async def scenario():
        task = asyncio.create_task(journal.begin(begun(1, "hi")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return stored(run), set(run.tree.model_calls.open)

    assert asyncio.run(scenario()) == ({1: 0}, {(ACTION, 1)})


# Rows


def bases(run):
    """Number → the number of the call whose request it builds on."""
    packed = run.store.query("SELECT number, request FROM calls ORDER BY number")
    return {number: json.loads(zlib.decompress(data)).get("base") for number, data in packed}


def test_a_conversation_is_stored_once_and_no_chain_is_long(run):
    journal, noise = RunJournal(run), [f"{random.Random(n).random()}" * 40 for n in range(100)]
    for number in range(1, 101):
        asyncio.run(journal.begin(begun(number, *noise[:number])))
        asyncio.run(journal.record(paid(number, *noise[:number])))
    on, links = bases(run), {}
    for number, base in on.items():
        links[number] = links[base] + 1 if base else 0
    assert max(links.values()) == 32
    assert list(links.values()).count(0) == 4
    assert [one.request for one in exchanges(run)] == [asked(*noise[:n]) for n in range(1, 101)]


def test_only_answered_requests_are_built_on(run):
    journal = RunJournal(run)
    refused = WireReply(WireProtocol.CHAT, b"{}", False, Usage(calls=1), error="no", status=400)
    asyncio.run(journal.record(paid(1, "a")))
    asyncio.run(journal.begin(begun(2, "a", "b")))
    asyncio.run(journal.record(paid(3, "a", "c", reply=refused)))
    asyncio.run(journal.record(paid(4, "a", "b", "d")))
    journal.book(ACTION, 2, "m", "solve", Usage())
    assert bases(run) == {1: None, 2: 1, 3: 1, 4: 1}
    assert kinds(run) == [ModelCalled, CallStarted, ModelCalled, ModelCalled, CallBooked]


# Bounds


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
    """The statuses of requests with these texts in one attempt, the size of the rows, and which texts they hold."""

    async def scenario():
        with Run.open(folder, write=True) if folder.exists() else Run.create(folder, {}) as run:
            if not run.tree.tasks:
                run.append(RunStarted(Budget(), (TaskId("t"),)))
            async with lent(folder.parent / "g", journal=Kept(run)) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    async with client(opened, lease.token) as http:
                        answers = [await http.post("/chat/completions", json=chat(text)) for text in texts]
            reader = CallReader(run.store)
            kept = [str(reader.exchange(call)[0].messages) for call in run.store.calls(ACTION)]
            ((size,),) = run.store.query("SELECT sum(length(request)) FROM calls")
        return (
            [answer.status_code for answer in answers],
            size,
            [one in text for one, text in zip(TEXTS, kept, strict=False)],
        )

    return asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize(
    "refusing",
    [
        lambda *given, **more: gateway(given[0], Provider(failing(TOO_LONG)), **more),
        lambda *given, **more: gateway(given[0], Script(TOO_LONG), **more),
    ],
)
def test_refused_requests_are_kept_up_to_a_bound(tmp_path, monkeypatch, refusing):
    monkeypatch.setattr(CallWriter.__init__, "__defaults__", (zlib.compress, 200_000))
    statuses, size, kept = told(tmp_path / "run", refusing)
    assert (statuses, kept) == ([400] * 6, [True, True, False, False, False, False])
    assert size < 200_000
    assert told(tmp_path / "run", refusing)[0] == [400] * 6


def test_failed_requests_are_kept_up_to_the_same_bound(run, monkeypatch):
    monkeypatch.setattr(CallWriter.__init__, "__defaults__", (zlib.compress, 200_000))
    journal = RunJournal(run)
    for number, text in enumerate(TEXTS, 1):
        asyncio.run(journal.begin(begun(number, text)))
        journal.book(ACTION, number, "m", "solve", Usage())
    sizes = [
        size > 70_000 for (size,) in run.store.query("SELECT length(request) FROM calls ORDER BY number")
    ]
    assert sizes == [True, True, False, False, False, False]


def test_a_large_request_that_is_answered_is_kept(tmp_path):
    said = lambda *given, **more: gateway(given[0], Provider(whole("a"), whole("b")), **more)  # noqa: E731
    statuses, _, kept = told(tmp_path / "run", said, TEXTS[:2])
    assert (statuses, kept) == ([200] * 2, [True] * 2)


# What a job reads


def test_a_job_reads_what_it_needs_and_not_on_the_event_loop(tmp_path, monkeypatch):
    read, request = [], CallReader.request

    def noted(self, call):
        read.append((call.number, threading.current_thread() is threading.main_thread()))
        return request(self, call)

    async def scenario():
        with Run.create(tmp_path / "run", {}) as run:
            run.append(RunStarted(Budget(), (TaskId("t"),)))
            journal = Kept(run)
            for number in (1, 2, 3):
                await journal.record(paid(number, f"{number}"))
            monkeypatch.setattr(CallReader, "request", noted)
            async with gateway(tmp_path / "g", Provider(whole("new")), journal) as opened:
                with opened.lend(ACTION, "solve", heard={1, 2, 3}) as lease:
                    await lease.recall()
                with opened.lend(ACTION, "solve", heard={1, 2}) as lease:
                    assert not read
                    async with client(opened, lease.token) as http:
                        await http.post("/chat/completions", json=chat("other"))

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert read == [(3, False)]
