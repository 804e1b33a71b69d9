"""A call that nobody listens to any more is taken over by an equal request of its action, and paid once."""

import asyncio
import time
from functools import partial

import pytest

from dgm.archive.volatile_text import Conditions
from dgm.domain import Usage
from tests.support.gateway.bench import ACTION, MemoryJournal, Slow, ask, chat, client, gateway
from tests.support.gateway.wire_provider import Provider, streamed, until, whole

pytestmark = pytest.mark.slow

DAY_S = 86_400.0


def post(http, **more):
    return http.post("/chat/completions", json=chat(**more))


async def leave_open(opened, lease, **more):
    """Ask, and hang up when the provider has the request."""
    before = len(lease.billed_calls())
    async with client(opened, lease.token) as http:
        asked = asyncio.create_task(post(http, **more))
        await until(lambda: len(lease.billed_calls()) > before)
        asked.cancel()
    await until(lambda: not lease.open)


async def test_equal_requests_of_two_jobs_of_one_attempt_are_paid_each(tmp_path):
    provider, journal, heard = Provider(whole()), MemoryJournal(), set()
    async with gateway(tmp_path / "g", provider, journal) as opened:
        lend = partial(opened.lend, ACTION, "solve", heard=heard)
        with lend() as one, lend() as two:
            async with client(opened, one.token) as first, client(opened, two.token) as second:
                await asyncio.gather(post(first), post(second))
    assert (len(provider.asked), len(journal.paid)) == (2, 2)


async def test_the_next_job_takes_over_a_late_call_of_a_model_in_dgms_own_form(tmp_path):
    model, journal = Slow(), MemoryJournal()
    async with gateway(tmp_path / "g", model, journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            late = asyncio.create_task(ask(client(opened, lease.token)))
            await until(lambda: model.waiting)
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                again = asyncio.create_task(ask(http))
                await until(lease.billed_calls)
                model.go.set()
                assert (await again)[0] == 200
        await late
    assert (len(model.asked), len(journal.paid), lease.calls) == (1, 1, 1)


async def test_a_job_whose_time_is_over_waits_for_a_call_that_it_took_over(tmp_path):
    """Else it would be graded, as an agent that was too slow, for a provider that does not answer."""
    gate = asyncio.Event()
    async with gateway(tmp_path / "g", Provider(streamed(gate, passed=0))) as opened:
        with opened.lend(ACTION, "solve") as lease:
            await leave_open(opened, lease)
        with opened.lend(ACTION, "solve") as again:
            async with client(opened, again.token) as http:
                asked = asyncio.create_task(post(http))
                await until(again.billed_calls)
                assert "had not answered" in await again.wait_for_calls(0.05)
                gate.set()
                assert (await asked).status_code == 200


async def test_a_call_that_nobody_needs_any_more_is_not_sent(tmp_path):
    let, journal, sent = asyncio.Event(), MemoryJournal(), []

    async def refused_once(request, delivery):
        with delivery.waiting():
            await let.wait()
        sent.append(request)
        return await whole()(request, delivery)

    provider = Provider(refused_once)
    async with gateway(tmp_path / "g", provider, journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            http = client(opened, lease.token)
            asked = asyncio.create_task(post(http))
            await until(lambda: provider.asked and not lease.billed_calls())
        assert (await asked).status_code == 401
        await http.aclose()
        let.set()
    assert (sent, journal.paid, journal.booked) == ([], {}, [(1, Usage())])


async def test_a_job_of_the_next_day_takes_over_the_call_of_the_day_before(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 2 * DAY_S)
    gate, journal = asyncio.Event(), MemoryJournal()
    provider = Provider(streamed(gate, passed=0))
    journal.then = Conditions.at(DAY_S)
    async with gateway(tmp_path / "g", provider, journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            await leave_open(opened, lease, text="Today is 1970-01-02.")
        with opened.lend(ACTION, "solve") as again:
            async with client(opened, again.token) as http:
                asked = asyncio.create_task(post(http, text="Today is 1970-01-03."))
                await until(again.billed_calls)
                gate.set()
                assert (await asked).status_code == 200
    assert len(provider.asked) == 1
