"""A benchmark's further try: on the agent's own work, told what went wrong, graded and kept as a whole."""

import asyncio
import json

import pytest

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Entry, Evaluate, Task, TaskId, Verdict
from dgm.errors import Infrastructure
from dgm.protocols import Completed, Grade, SandboxSpec
from dgm.sandboxes import transfer
from dgm.search.prepare import AgentIndex
from dgm.worker.session import Session
from dgm.worker.worker import Worker
from tests.support.agent_place import MANIFEST, SOURCE, Place
from tests.support.runs.builder import RunBuilder

pytestmark = pytest.mark.starts_processes

START = {"a.py": Entry(b"0\n")}
TASK = TaskId("t")


class Writer(Place):
    """Each job leaves what the agent of the test has written by then."""

    def __init__(self, *folders):
        super().__init__(folders=folders)

    async def exec(self, argv, **_):
        return Completed(0, f"job {len(self.jobs)}".encode())


class Tries:
    """A benchmark that is solved by writing 2, and gives a second try."""

    name = version = "tries"

    def __init__(self):
        self.patches = []

    def task(self, task):
        return Task(task, self.name, "write 2", "python", "/work/t", 60)

    def workspace(self, task):
        return START

    def again(self, task, grade, tried):
        return f"not yet: {grade.reason}" if tried < 2 and grade.verdict is Verdict.UNRESOLVED else ""

    async def grade(self, task, patch, labels):
        self.patches.append(patch)
        if b"+broken" in patch:
            raise Infrastructure("engine gone")
        good = b"+2\n" in patch
        return Grade(
            Verdict.RESOLVED if good else Verdict.UNRESOLVED, "it is 1" if not good else "ok", 1.0, log=b"log"
        )


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        yield made


class Writing(Writer):
    """A sandbox in which the agent writes trajectories; None: it writes none."""

    def __init__(self, *told):
        super().__init__({"a.py": Entry(b"1\n")}, {"a.py": Entry(b"3\n")})
        self.told = list(told)

    async def exec(self, argv, **_):
        if argv[0] == "sh":
            data = self.told.pop(0)
            return Completed(0, transfer.pack({"t.json": Entry(data)} if data else {}))
        return await super().exec(argv)


def evaluated(run, place, benchmark, settings=None, source=SOURCE):
    RunBuilder(run).bear(source)
    settings = settings or Settings()
    session = Session(place, place, SandboxSpec("python"), settings.limits)
    worker = Worker(run, session, benchmark, {}, settings, AgentIndex(run))
    return asyncio.run(worker.perform(ActionId(1), Evaluate(AgentId(0), TASK)))


def test_second_try_goes_on_from_the_first_and_is_graded_as_a_whole(run):
    first = {"a.py": Entry(b"1\n"), "kept.py": Entry(b"kept\n")}
    place, benchmark = Writer(first, {**first, "a.py": Entry(b"2\n")}), Tries()
    outcome = evaluated(run, place, benchmark)
    assert outcome.verdict is Verdict.RESOLVED
    assert place.problem(0) == "write 2"
    assert place.problem(1) == "not yet: it is 1"
    assert place.jobs[1]["work/t/kept.py"].data == b"kept\n"
    assert place.jobs[1]["work/t/a.py"].data == b"1\n"
    assert b"-0\n+2\n" in benchmark.patches[1]
    assert b"+kept\n" in benchmark.patches[1]


def test_traces_of_both_tries_are_kept(run):
    place = Writer({"a.py": Entry(b"1\n")}, {"a.py": Entry(b"2\n")})
    kept = evaluated(run, place, Tries()).cost.traces
    assert run.traces.get(kept["log-1"]) == b"job 1"
    assert run.traces.get(kept["log"]) == b"job 2"
    assert b"+1\n" in run.traces.get(kept["patch-1"])
    assert b"+2\n" in run.traces.get(kept["patch"])
    assert {"conversation-1", "tests-1", "failures-1"} <= set(kept)


WRITES = {"agent.toml": Entry(MANIFEST + b'trajectory = "/tmp/t.json"\n')}
FIRST, SECOND = (json.dumps([{"role": "user", "content": said}]).encode() for said in ("write", "again"))


def test_each_try_keeps_the_file_that_the_agent_wrote_of_it(run):
    kept = evaluated(run, Writing(FIRST, SECOND), Tries(), source=WRITES).cost.traces
    assert run.traces.get(kept["trajectory-1"]) == FIRST
    assert run.traces.get(kept["trajectory"]) == SECOND
    assert run.traces.get(kept["conversation"]) == b"## user\n\nagain\n"


@pytest.mark.parametrize("last", [None, b"no trajectory"])
def test_a_try_without_a_readable_file_has_not_that_of_the_one_before(run, last):
    kept = evaluated(run, Writing(FIRST, last), Tries(), source=WRITES).cost.traces
    assert run.traces.get(kept["trajectory-1"]) == FIRST
    assert "trajectory" not in kept


def test_a_solved_task_is_not_tried_again(run):
    place = Writer({"a.py": Entry(b"2\n")})
    kept = evaluated(run, place, Tries()).cost.traces
    assert len(place.jobs) == 1
    assert "log-1" not in kept


def test_a_second_try_that_fails_too_is_the_end(run):
    place = Writer({"a.py": Entry(b"1\n")}, {"a.py": Entry(b"3\n")})
    outcome = evaluated(run, place, Tries())
    assert (outcome.verdict, outcome.reason) == (Verdict.UNRESOLVED, "it is 1")
    assert len(place.jobs) == 2


def test_a_second_try_that_cannot_be_graded_is_invalid(run):
    place = Writer({"a.py": Entry(b"1\n")}, {"a.py": Entry(b"broken\n")})
    assert evaluated(run, place, Tries()).verdict is Verdict.INVALID


def test_a_second_patch_that_is_too_large_loses_its_largest_new_file(run):
    most = Settings().limits.patch_bytes
    half = Entry(b"x" * 79 + b"\n", 0o100644)
    many = Entry(half.data * (most // 80 * 6 // 10))
    place = Writer({"a.py": many}, {"a.py": many, "b.py": many})
    outcome = evaluated(run, place, Tries())
    assert outcome.verdict is Verdict.UNRESOLVED
    assert outcome.reason == "it is 1 (left out of the patch: 1 new file of 1,200,000 bytes (b.py))"


def test_what_an_agent_lacked_by_its_own_fault_is_in_the_reason(run):
    place = Writer({"a.py": Entry(b"1\n")}, {"a.py": Entry(b"3\n")})
    place.refused = {"request_failed": "500 no"}
    assert evaluated(run, place, Tries()).reason == "it is 1 (the agent lacked answers: 500 no)"


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, 60.0),
        ({"solve_s": 50.0}, 50.0),
        ({"time_factor": 2.5}, 150.0),
        ({"solve_s": 10.0, "time_factor": 3.0}, 30.0),
    ],
)
def test_settings_change_the_time_of_an_agent_at_a_task(run, limits, seconds):
    place = Writer({"a.py": Entry(b"2\n")})
    evaluated(run, place, Tries(), Settings(limits=limits))
    job = json.loads(place.jobs[0]["job/job.json"].data)
    assert job["time_limit_s"] == seconds
