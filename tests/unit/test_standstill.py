"""Time in which dgm itself stood still."""

import asyncio

import pytest

from dgm.errors import AgentFault
from dgm.processes import StandstillWatch, repeat_after_standstill


class Times:
    """A clock and the processor time of a process, both set by hand."""

    def __init__(self):
        self.now = self.used = 0.0

    def watch(self):
        return StandstillWatch(lambda: self.now, lambda: self.used)


def test_time_without_a_beat_is_a_standstill():
    times = Times()
    watch = times.watch()
    began = watch.beat()
    times.now += 45.0
    assert "45 s" in str(watch.find_standstill(began))


def test_work_begun_after_a_standstill_is_not_concerned():
    times = Times()
    watch = times.watch()
    times.now += 45.0
    began = watch.beat()
    times.now += 1.0
    assert watch.find_standstill(began) is None


def test_a_standstill_that_a_later_beat_follows_is_remembered():
    times = Times()
    watch = times.watch()
    began = watch.beat()
    for seconds in (1.0, 45.0, 1.0):
        times.now += seconds
        watch.beat()
    assert watch.find_standstill(began)


def test_a_loop_that_works_for_long_does_not_stand_still():
    times = Times()
    watch = times.watch()
    began = watch.beat()
    times.now += 8.0
    times.used += 6.0
    assert watch.find_standstill(began) is None


@pytest.mark.parametrize("fault", [True, False])
def test_only_what_failed_across_a_standstill_is_performed_again(fault):
    times = Times()
    tries = []

    async def perform():
        tries.append(1)
        if len(tries) == 1:
            times.now += 45.0
            if fault:
                raise AgentFault("time", "out of time")
            return "late"
        return "bad, but undisturbed"

    result = asyncio.run(repeat_after_standstill(perform, lambda _: True, times.watch))
    assert (result, len(tries)) == ("bad, but undisturbed", 2)
