"""Children have room for a start as slow as that of the seed."""

import asyncio
import contextlib
import subprocess
import sys

import pytest

from dgm.config import LimitSettings
from dgm.errors import Infrastructure
from dgm.protocols import Completed, SandboxSpec
from dgm.worker.own_start import allow_seed_start, find_start_seconds, follow_seed_start, measure_slowness


@pytest.mark.parametrize(("given", "seed"), [(10.0, 120.0), (300.0, 300.0)])
def test_the_seed_has_two_minutes_or_what_the_settings_say(given, seed):
    assert allow_seed_start(LimitSettings(check_s=given)).check_s == seed


@pytest.mark.parametrize(("measured", "children"), [(0.2, 10.0), (3.4, 11.0), (7.0, 21.0)])
def test_children_of_a_slow_seed_have_three_times_its_start(measured, children):
    assert follow_seed_start(LimitSettings(check_s=10.0), measured).check_s == children


def test_where_no_processor_time_is_known_the_clock_counts():
    assert find_start_seconds(Completed(0, b"", seconds=2.0)) == 2.0
    assert find_start_seconds(Completed(0, b"", seconds=2.0, processor_s=1.0)) == 1.0


def measure(run):
    class Machine:
        async def exec(self, argv, *, timeout_s, cwd):
            assert (timeout_s, cwd) == (120.0, "/")
            return run(argv)

    @contextlib.asynccontextmanager
    async def open_sandbox(_spec):
        yield Machine()

    return asyncio.run(measure_slowness(open_sandbox, SandboxSpec("python")))


@pytest.mark.starts_processes
def test_the_slowness_of_a_machine_is_at_least_one():
    def run(argv):
        done = subprocess.run([sys.executable, *argv[1:]], capture_output=True, check=True)
        return Completed(0, done.stdout)

    assert 1.0 <= measure(run) < 120.0 / 0.3


def test_a_machine_that_cannot_be_measured_says_so():
    with pytest.raises(Infrastructure, match=r"python3 of python ended with 127: 'sh: python3: not found'"):
        measure(lambda _: Completed(127, b"sh: python3: not found"))
