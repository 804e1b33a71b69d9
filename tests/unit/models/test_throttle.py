"""A provider's limits hold for all workers together, in the order in which they ask."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.config import ProviderSettings
from dgm.models.throttle import Throttle
from tests.support import virtual_time
from tests.support.virtual_time import clock


def throttle(**limits):
    return Throttle(ProviderSettings(**limits), asyncio.sleep, clock)


async def call(queue, log, tokens=1, takes_s=0.0, used=None):
    async with queue.turn(tokens) as turn:
        log.append((clock(), tokens))
        await asyncio.sleep(takes_s)
        if used is not None:
            queue.used(turn, used)


def test_calls_begin_in_the_order_in_which_they_came():
    async def scenario():
        queue, order = throttle(concurrency=2), []

        async def one(number):
            async with queue.turn(1):
                order.append(number)
                await asyncio.sleep(7 - number)

        await asyncio.gather(*(one(number) for number in range(6)))
        return order

    assert virtual_time.run(scenario()) == list(range(6))


def test_a_refused_number_is_halved_once_for_all_calls_under_way():
    async def scenario():
        queue = throttle(concurrency=16)
        seen = []

        async def one():
            async with queue.turn(1) as turn:
                await asyncio.sleep(1)
                queue.note_too_many(turn)
                seen.append(queue.allowed)

        await asyncio.gather(*(one() for _ in range(16)))
        await one()
        return seen

    assert virtual_time.run(scenario()) == [8] * 16 + [4]


def test_one_call_is_always_allowed_and_successes_raise_the_number_slowly():
    async def scenario():
        queue = throttle(concurrency=4)
        for _ in range(5):
            async with queue.turn(1) as turn:
                queue.note_too_many(turn)
        numbers = [queue.allowed]
        for _ in range(12):
            queue.went_well()
            numbers.append(queue.allowed)
        return numbers

    numbers = virtual_time.run(scenario())
    assert numbers[0] == 1 and numbers[-1] == 4
    assert numbers == sorted(numbers) and numbers.count(2) >= 2 and numbers.count(3) >= 3


def test_a_pause_holds_everybody():
    async def scenario():
        queue, log = throttle(), []
        begun = clock()
        queue.pause(30)
        queue.pause(5)
        await asyncio.gather(*(call(queue, log) for _ in range(3)))
        return [at - begun for at, _ in log]

    assert virtual_time.run(scenario()) == pytest.approx([30, 30, 30])


def test_a_call_that_took_more_holds_the_next():
    async def scenario():
        queue, log = throttle(tokens_per_minute=100), []
        begun = clock()
        await call(queue, log, 10, used=100)
        await call(queue, log, 10)
        return [at - begun for at, _ in log]

    assert virtual_time.run(scenario()) == pytest.approx([0, 60])


def test_a_call_beyond_the_limit_goes_alone():
    async def scenario():
        queue, log = throttle(tokens_per_minute=100), []
        begun = clock()
        await asyncio.gather(*(call(queue, log, tokens) for tokens in (1, 500, 1)))
        return [at - begun for at, _ in log]

    assert virtual_time.run(scenario()) == pytest.approx([0, 60, 120])


def test_a_caller_that_gives_up_blocks_nobody():
    async def scenario():
        queue, log = throttle(concurrency=1, requests_per_minute=2), []
        running = asyncio.create_task(call(queue, log, takes_s=1))
        await asyncio.sleep(0.1)
        waiting = [asyncio.create_task(call(queue, log)) for _ in range(3)]
        await asyncio.sleep(0.1)
        waiting[0].cancel()
        waiting[1].cancel()
        running.cancel()
        await asyncio.gather(*waiting, running, return_exceptions=True)
        return len(log)

    assert virtual_time.run(scenario()) == 2


arrivals = st.lists(
    st.tuples(st.floats(0, 40), st.integers(1, 120), st.floats(0, 30), st.floats(0, 1)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(arrivals, st.integers(1, 8), st.integers(20, 200), st.integers(1, 5))
def test_limits_hold_in_every_window_of_a_minute(calls, requests, tokens, concurrency):
    async def scenario():
        queue, log = (
            throttle(requests_per_minute=requests, tokens_per_minute=tokens, concurrency=concurrency),
            [],
        )

        async def one(estimate, takes_s, share):
            async with queue.turn(estimate) as turn:
                real = int(estimate * share)
                log.append((clock(), real))
                await asyncio.sleep(takes_s)
                queue.used(turn, real)

        async with asyncio.TaskGroup() as group:
            for gap, estimate, takes_s, share in calls:
                await asyncio.sleep(gap)
                group.create_task(one(estimate, takes_s, share))
        return log

    log = virtual_time.run(scenario())
    assert len(log) == len(calls)
    for begin, _ in log:
        window = [used for at, used in log if begin <= at < begin + 60 - 1e-6]
        assert len(window) <= requests
        assert sum(window) <= tokens or sum(map(bool, window)) == 1
