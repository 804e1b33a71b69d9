"""Slow evaluations are performed a second time, and the first result counts."""

import asyncio

import pytest

from dgm.domain import (
    NO_ACTION,
    SEED,
    ActionId,
    Agent,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    TaskId,
    Usage,
    Verdict,
)
from dgm.search.orders import EvaluateOrder, ExpandOrder
from dgm.search.second_performances import KNOWN, SecondPerformances

AGENT = Agent(SEED, CommitId("c" * 40), (), "seed", "", NO_ACTION)


def order(number):
    return EvaluateOrder(ActionId(number), Evaluate(SEED, TaskId("t"), 0), AGENT)


def outcome(verdict=Verdict.RESOLVED, reason="", seconds=0.02):
    return Evaluation(SEED, TaskId("t"), 0, verdict, reason, 0.0, Cost(Usage(), seconds, {}))


class Worker:
    """Ends each performance at once, unless it is told otherwise for its action and number."""

    def __init__(self, **later):
        self.performed = []
        self.cancelled = []
        self._later = {tuple(map(int, key[1:].split("_"))): said for key, said in later.items()}

    async def perform(self, order):
        key = (order.id, order.performance)
        self.performed.append(key)
        seconds, result = self._later.get(key, (0.0, outcome()))
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled.append(key)
            raise
        return result


async def learned(worker, factor=2.0, workers=10):
    """An executor that knows what is usual."""
    executor = SecondPerformances(worker, factor, workers)
    for number in range(KNOWN):
        await executor.perform(order(100 + number))
    worker.performed.clear()
    return executor


def test_a_slow_evaluation_is_performed_again_and_the_first_result_counts():
    async def go():
        worker = Worker(_1_1=(60, outcome()), _1_2=(0.0, outcome(reason="second")))
        async with await learned(worker) as executor:
            assert (await executor.perform(order(1))).reason == "second"
        assert (worker.performed, worker.cancelled) == ([(1, 1), (1, 2)], [(1, 1)])
        assert (executor.begun, executor.won) == (1, 1)

    asyncio.run(go())


def test_the_first_performance_may_win_yet():
    async def go():
        worker = Worker(_1_1=(0.2, outcome(reason="first")), _1_2=(60, outcome()))
        async with await learned(worker) as executor:
            assert (await executor.perform(order(1))).reason == "first"
        assert worker.cancelled == [(1, 2)]
        assert (executor.begun, executor.won) == (1, 0)

    asyncio.run(go())


@pytest.mark.parametrize("failed", [1, 2])
def test_a_performance_that_fails_leaves_the_word_to_the_other(failed):
    async def go():
        invalid = (0.1, outcome(Verdict.INVALID, "the node is lost"))
        later = {f"_1_{failed}": invalid, f"_1_{3 - failed}": (0.3, outcome(reason="good"))}
        async with await learned(Worker(**later)) as executor:
            assert (await executor.perform(order(1))).reason == "good"

    asyncio.run(go())


def test_where_both_fail_the_evaluation_failed():
    async def go():
        invalid = outcome(Verdict.INVALID, "lost")
        worker = Worker(_1_1=(0.1, invalid), _1_2=(0.05, invalid))
        async with await learned(worker) as executor:
            assert (await executor.perform(order(1))).verdict is Verdict.INVALID
        assert worker.performed == [(1, 1), (1, 2)]

    asyncio.run(go())


def test_a_tenth_of_the_workers_may_perform_second_times_at_once():
    async def go():
        slow = {f"_{number}_{time}": (0.3, outcome()) for number in (1, 2, 3) for time in (1, 2)}
        worker = Worker(**slow)
        async with await learned(worker, workers=20) as executor:
            await asyncio.gather(*(executor.perform(order(number)) for number in (1, 2, 3)))
        assert sum(time == 2 for _, time in worker.performed) == 2

    asyncio.run(go())


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_nothing_is_repeated_before_it_is_known_what_is_usual_or_if_nobody_asked(factor):
    async def go():
        worker = Worker(_1_1=(0.1, outcome()))
        executor = await learned(worker, factor) if not factor else SecondPerformances(worker, factor, 10)
        async with executor:
            await executor.perform(order(1))
        assert worker.performed == [(1, 1)]

    asyncio.run(go())


def test_a_stop_ends_both_performances():
    async def go():
        worker = Worker(_1_1=(60, outcome()), _1_2=(60, outcome()))
        async with await learned(worker) as executor:
            running = asyncio.create_task(executor.perform(order(1)))
            while len(worker.performed) < 2:
                await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert worker.cancelled == [(1, 1), (1, 2)]

    asyncio.run(go())


def test_expansions_are_performed_once():
    class Expanding:
        async def perform(self, order):
            return order

    async def go():
        given = object.__new__(ExpandOrder)
        async with SecondPerformances(Expanding(), 2.0, 10) as executor:
            assert await executor.perform(given) is given

    asyncio.run(go())
