"""Processor time: whose account is read, what a limit looks like to a program, and when a command is ended for it."""

import asyncio
import subprocess

import pytest

from dgm.sandboxes.cgroups import ControlGroup, with_account
from dgm.sandboxes.processor import SIGNALLED, ProcessorMeter, limit_command, processor_of


@pytest.mark.starts_processes
@pytest.mark.parametrize("limit_s", [None, 5.0])
def test_both_outputs_of_a_program_are_merged_and_words_pass_as_they_are(limit_s):
    words = ["sh", "-c", 'echo "$0"; echo two >&2; echo three', "$1; no"]
    assert subprocess.check_output(limit_command(words, limit_s)) == b"$1; no\ntwo\nthree\n"


@pytest.mark.starts_processes
def test_each_process_has_the_limit_and_words_pass_as_they_are():
    shown = subprocess.run(
        limit_command(["sh", "-c", 'ulimit -S -t; ulimit -H -t; echo "$0"', "a b; $c"], 6.5),
        capture_output=True,
        check=True,
    )
    assert shown.stdout.decode().split("\n")[:3] == ["8", "9", "a b; $c"]
    busy = limit_command(["sh", "-c", "while :; do :; done"], 0.0)
    burnt = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *busy], check=False)
    assert burnt.returncode == SIGNALLED


@pytest.mark.parametrize(
    ("files", "seconds"),
    [
        ({"a/cpuacct.usage": "2500000000\n"}, 2.5),
        ({"a/cpu.stat": "nr_periods 0\n", "b/cpuacct.usage": "1000000000\n"}, 1.0),
        ({"a/cpu.stat": "usage_usec 1500000\nuser_usec 7\n"}, 1.5),
        ({"a/cpu.stat": "nr_periods 0\n"}, None),
        ({}, None),
    ],
)
def test_the_account_of_a_control_group_is_read_in_both_versions(tmp_path, files, seconds):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert ControlGroup((tmp_path / "a", tmp_path / "b")).processor_s() == seconds


def test_an_account_that_is_mounted_with_the_processor_is_no_group_of_its_own(tmp_path):
    for name in ("cpu,cpuacct", "alone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text("")
    for name in ("cpu", "cpuacct"):
        (tmp_path / name).symlink_to("cpu,cpuacct")
    parents = [tmp_path / "cpu"]
    assert with_account(parents, tmp_path / "cpuacct") == parents
    assert with_account(parents, tmp_path / "absent") == parents
    assert with_account(parents, tmp_path / "alone") == [*parents, tmp_path / "alone"]


@pytest.mark.parametrize(
    ("stats", "seconds"),
    [
        ({"cpu_stats": {"cpu_usage": {"total_usage": 3_000_000_000}}}, 3.0),
        ({"cpu_stats": {}}, None),
        ({}, None),
    ],
)
def test_the_account_of_an_engine_is_read(stats, seconds):
    assert processor_of(stats) == seconds


class Sandbox:
    """Takes a second more of the processor each time it is asked."""

    def __init__(self, *, accounts=True):
        self.taken, self.ended, self.accounts = 10.0, False, accounts

    async def used(self):
        self.taken += 1.0
        return self.taken if self.accounts else None

    async def end(self):
        self.ended = True


def metered(sandbox, limit_s):
    """A meter that watched a command for ten looks at what it takes, at most."""

    async def watch():
        meter = ProcessorMeter(limit_s, sandbox.used, every_s=0.0)
        await meter.begin()
        async with meter.watching(sandbox.end):
            for _ in range(200):
                if sandbox.ended or sandbox.taken >= 20.0:
                    break
                await asyncio.sleep(0)
        return meter

    return asyncio.run(watch())


def test_a_command_is_ended_when_it_has_taken_what_it_may():
    sandbox = Sandbox()
    assert metered(sandbox, 3.0).over
    assert (sandbox.ended, sandbox.taken) == (True, 14.0), "what was taken before it does not count"


def test_a_command_is_let_be_without_a_limit_or_an_account():
    for sandbox, limit_s in ((Sandbox(), None), (Sandbox(accounts=False), 3.0)):
        meter = metered(sandbox, limit_s)
        assert (meter.over, sandbox.ended, asyncio.run(meter.used_s())) == (False, False, None)
