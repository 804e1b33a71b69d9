"""Two performances of one action at once pay once for the calls that both make."""

import asyncio
import time
from dataclasses import replace
from functools import partial

import pytest

from dgm.domain import Budget, Usage
from dgm.gateway.calls import JobEnded
from dgm.messages import Reply, Stop
from dgm.volatile_text import Conditions
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, Slow, ask, chat, client, gateway
from tests.support.gateway.wire_provider import STREAM, Provider, lending, streamed, until, whole

pytestmark = pytest.mark.slow

DAY_S = 86_400.0


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 60))


def post(http, **more):
    return http.post("/chat/completions", json=chat(**more))


def has_joined(lease):
    """Return whether a request of the lease waits for a call, and has not only arrived."""
    return lease._heard_since or lease._paying


async def both_wait(first, is_asked, second, lease, waits=has_joined):
    """Begin the request of one performance, then the same of the other, which has the lease; return both."""
    asked = asyncio.create_task(first)
    await until(is_asked)
    joined = asyncio.create_task(second)
    await until(lambda: waits(lease))
    return asked, joined


def test_the_second_joins_a_call_that_the_first_waits_for(tmp_path):
    async def scenario():
        gate, journal = asyncio.Event(), MemoryJournal()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    asked, joined = await both_wait(
                        post(first, stream=True), lambda: provider.asked, post(second, stream=True), two
                    )
                    gate.set()
                    answers = [(await each).content for each in (asked, joined)]
        assert answers == [b"".join(STREAM)] * 2
        assert (len(provider.asked), len(journal.paid)) == (1, 1)
        assert (one.calls, two.calls) == (1, 1)

    run(scenario())


def test_equal_requests_at_the_same_moment_are_paid_once(tmp_path):
    async def scenario():
        provider, journal = Provider(whole()), MemoryJournal()
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    answers = await asyncio.gather(post(first), post(second))
        assert [answer.status_code for answer in answers] == [200, 200]
        assert (len(provider.asked), len(journal.paid)) == (1, 1)

    run(scenario())


def test_whoever_comes_later_gets_what_the_other_has_paid_and_asks_for_more_itself(tmp_path):
    async def scenario():
        provider, journal = Provider(whole()), MemoryJournal()
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    for http in (first, first, second, second):
                        await post(http)
                    assert len(provider.asked) == 2
                    await post(second)
                    assert len(provider.asked) == 3
                    # And what the second has paid is there for the first.
                    await post(first)
        assert (len(provider.asked), len(journal.paid)) == (3, 3)

    run(scenario())


def test_a_call_goes_on_for_the_other_when_the_one_that_made_it_has_ended(tmp_path):
    async def scenario():
        gate, journal = asyncio.Event(), MemoryJournal()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as two:
                async with client(opened, two.token) as second:
                    with opened.lend(ACTION, "solve") as one:
                        async with client(opened, one.token) as first:
                            asked, joined = await both_wait(
                                post(first), lambda: provider.asked, post(second), two
                            )
                            asked.cancel()
                    gate.set()
                    assert (await joined).status_code == 200
        assert (len(provider.asked), len(journal.paid)) == (1, 1)

    run(scenario())


def test_a_call_that_waits_at_its_provider_is_kept_for_the_other(tmp_path):
    """Nothing was sent for it yet, so that it would be given up if nobody else needed it."""

    async def scenario():
        let, journal = asyncio.Event(), MemoryJournal()

        async def held(request, delivery):
            with delivery.waiting():
                await let.wait()
            with delivery.waiting():
                pass
            return await whole()(request, delivery)

        provider = Provider(held)
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as two:
                async with client(opened, two.token) as second:
                    with opened.lend(ACTION, "solve") as one:
                        async with client(opened, one.token) as first:
                            asked, joined = await both_wait(
                                post(first), lambda: provider.asked, post(second), two
                            )
                            asked.cancel()
                    let.set()
                    assert (await joined).status_code == 200
        assert (len(provider.asked), len(journal.paid)) == (1, 1)

    run(scenario())


def test_a_model_in_dgms_own_form_is_asked_once_for_both(tmp_path):
    async def scenario():
        model, journal = Slow(), MemoryJournal()
        async with gateway(tmp_path / "g", model, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    asked, joined = await both_wait(ask(first), lambda: model.waiting, ask(second), two)
                    model.go.set()
                    answers = [
                        (await each)[1]["choices"][0]["message"]["content"] for each in (asked, joined)
                    ]
        assert answers == ["hello", "hello"]
        assert (len(model.asked), len(journal.paid)) == (1, 1)

    run(scenario())


def test_an_answer_in_dgms_own_form_is_there_for_the_other(tmp_path):
    async def scenario():
        model, journal = Script(Reply("one"), Reply("two")), MemoryJournal()
        async with gateway(tmp_path / "g", model, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    told = [
                        (await ask(http))[1]["choices"][0]["message"]["content"]
                        for http in (first, second, second, first)
                    ]
        assert told == ["one", "one", "two", "two"]
        assert len(model.asked) == 2

    run(scenario())


def test_equal_requests_of_two_jobs_of_one_performance_are_paid_each(tmp_path):
    async def scenario():
        provider, journal, heard = Provider(whole()), MemoryJournal(), set()
        async with lending(tmp_path / "g", provider, journal) as opened:
            lend = partial(opened.lend, ACTION, "solve", heard=heard)
            with lend() as one, lend() as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    await asyncio.gather(post(first), post(second))
        assert (len(provider.asked), len(journal.paid)) == (2, 2)

    run(scenario())


def test_a_performance_whose_time_is_over_waits_for_a_call_that_it_joined(tmp_path):
    """Else it would be graded, as an agent that was too slow, for a provider that does not answer."""

    async def scenario():
        gate = asyncio.Event()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    asked, joined = await both_wait(post(first), lambda: provider.asked, post(second), two)
                    assert "had not answered" in await two.wait_for_calls(0.05)
                    gate.set()
                    await asyncio.gather(asked, joined)

    run(scenario())


def test_a_call_that_its_own_job_gives_up_says_nothing_of_the_other_agent(tmp_path):
    async def scenario():
        journal, failed = MemoryJournal(), asyncio.Event()

        async def failing(request, delivery):
            await delivery.sending()
            await failed.wait()
            raise JobEnded

        provider = Provider(failing)
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    asked, joined = await both_wait(post(first), lambda: provider.asked, post(second), two)
                    failed.set()
                    await asyncio.gather(asked, joined)
                assert "gave it up" in str(two.failure)

    run(scenario())


def test_a_call_that_nobody_needs_any_more_is_not_sent(tmp_path):
    async def scenario():
        let, journal, sent = asyncio.Event(), MemoryJournal(), []

        async def queued(request, delivery):
            with delivery.waiting():
                await let.wait()
            await delivery.sending()
            sent.append(request)
            return await whole()(request, delivery)

        provider = Provider(queued)
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as two:
                async with client(opened, two.token) as second:
                    with opened.lend(ACTION, "solve") as one:
                        async with client(opened, one.token) as first:
                            asked, joined = await both_wait(
                                post(first), lambda: provider.asked, post(second), two
                            )
                            asked.cancel()
                    joined.cancel()
            let.set()
        assert (sent, journal.paid) == ([], {})

    run(scenario())


def test_an_answer_that_the_budget_cuts_short_reaches_no_other_performance(tmp_path):
    class Long(Slow):
        async def reply(self, request):
            said = await super().reply(request)
            return replace(said, stop=Stop.LENGTH, usage=Usage(1, 10, request.max_output_tokens))

    async def scenario():
        model = Long()
        async with gateway(tmp_path / "g", model, budget=Budget(usd=0.02)) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    asked, joined = await both_wait(
                        ask(first), lambda: model.waiting, ask(second), two, lambda lease: lease.open
                    )
                    model.go.set()
                    await asyncio.gather(asked, joined)
                assert one.failure is not None
                assert two.failure is not None

    run(scenario())


def test_next_performance_joins_a_late_call_of_a_model_in_dgms_own_form(tmp_path):
    async def scenario():
        model, journal = Slow(), MemoryJournal()
        async with gateway(tmp_path / "g", model, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                late = asyncio.create_task(ask(client(opened, lease.token)))
                await until(lambda: model.waiting)
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    again = asyncio.create_task(ask(http))
                    await until(lambda: has_joined(lease))
                    model.go.set()
                    assert (await again)[0] == 200
            await late
        assert len(journal.paid) == 1

    run(scenario())


def test_a_performance_of_the_next_day_joins_the_call_of_the_day_before(tmp_path, monkeypatch):
    async def scenario():
        gate, journal = asyncio.Event(), MemoryJournal()
        provider = Provider(streamed(gate, passed=0))
        journal.then = Conditions.at(DAY_S)
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as one, opened.lend(ACTION, "solve") as two:
                async with client(opened, one.token) as first, client(opened, two.token) as second:
                    asked, joined = await both_wait(
                        post(first, stream=True, text="Today is 1970-01-02."),
                        lambda: provider.asked,
                        post(second, stream=True, text="Today is 1970-01-03."),
                        two,
                    )
                    gate.set()
                    answers = [(await each).status_code for each in (asked, joined)]
        assert (answers, len(provider.asked)) == ([200, 200], 1)

    monkeypatch.setattr(time, "time", lambda: 2 * DAY_S)
    run(scenario())
