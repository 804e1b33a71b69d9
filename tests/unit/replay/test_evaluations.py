"""Evaluations that are done again, by a worker and a benchmark that do as they are told."""

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from dgm.archive.events import ActionStarted, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt, Infrastructure, UserError
from dgm.protocols import Grade
from dgm.replay.evaluations import How, find_graded, replay_evaluations
from dgm.replay.findings import Divergence, Match
from dgm.replay.recording import ReplayRun

pytestmark = pytest.mark.slow

TASK = TaskId("task")
ACTION = ActionId(1)
PATCH = b"--- a\n+++ b\n+one\n"
RAN_OUT = {"exit_code": 124, "timed_out": True, "truncated": False, "crashed": False}
WELL = {"exit_code": 0, "timed_out": False, "truncated": False, "crashed": False}


@dataclass
class Again:
    """Stands for the worker of a replay and its benchmark."""

    run: Run
    grades: object = None
    answer: object = None
    session: object = field(default_factory=lambda: SimpleNamespace(spec=SimpleNamespace(labels={})))
    settings: object = field(default_factory=Settings)

    @property
    def benchmark(self):
        return self

    def task(self, task):
        assert task == TASK
        return SimpleNamespace(timeout_s=100.0)

    async def grade(self, task, patch, labels):
        assert (task, patch) == (TASK, PATCH)
        if isinstance(self.grades, Exception):
            raise self.grades
        return self.grades

    async def perform(self, order):
        assert (order.id, order.action) == (ACTION, Evaluate(AgentId(0), TASK, 0))
        return self.answer


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(evaluations=9), (TASK,)))
        commit = made.repository.commit({"a": Entry(b"")}, ())
        made.append(made.birth(Born((), "seed", commit, ""), ActionId(0)))
        yield made


def outcome(traces, verdict, reason, patch=PATCH, signs=WELL, seconds=0.0):
    kept = {} if patch is None else {"patch": traces.put(patch)}
    kept["circumstances"] = traces.put(json.dumps(signs).encode())
    return Evaluation(AgentId(0), TASK, 0, verdict, reason, 0.0, Cost(Usage(calls=3), seconds, kept))


def record(run, verdict=Verdict.UNRESOLVED, reason="2 of 3 tests fail", **more):
    recorded = outcome(run.traces, verdict, reason, **more)
    run.append(ActionStarted(ACTION, Evaluate(AgentId(0), TASK)))
    run.append(TaskGraded(ACTION, recorded))
    return recorded


def replayed(run, worker, perform):
    chosen = find_graded(run)
    assert len(chosen) == 1
    return asyncio.run(replay_evaluations(run, chosen, worker, How(perform)))[0]


@pytest.mark.parametrize(
    ("reason", "grade", "match", "what"),
    [
        ("2 of 3 tests fail", Grade(Verdict.UNRESOLVED, "2 of 3 tests fail", 0.0), Match.SAME, None),
        ("took 3 s", Grade(Verdict.UNRESOLVED, "took 4.5 s", 0.0), Match.SAME, None),
        ("x (the agent exits 1)", Grade(Verdict.UNRESOLVED, "x", 0.0), Match.SAME, None),
        (
            "2 of 3 tests fail",
            Grade(Verdict.UNRESOLVED, "3 of 3 tests fail", 0.0),
            Match.DIFFERENT,
            "the reason: '2 of 3 tests fail' against '3 of 3 tests fail'",
        ),
        ("x", Grade(Verdict.RESOLVED, "all", 1.0), Match.DIFFERENT, "unresolved then, resolved now: all"),
        ("x", Infrastructure("no engine"), Match.NOT_PERFORMED, "the infrastructure failed: no engine"),
    ],
)
def test_a_patch_that_is_graded_again(run, reason, grade, match, what):
    record(run, reason=reason)
    found = replayed(run, Again(run, grades=grade), perform=False)
    assert found.match is match
    assert found.divergence == (Divergence(ACTION, what) if what else None)


def test_where_no_patch_was_left_there_is_nothing_to_grade(run):
    record(run, patch=None, reason="patch: too large")
    assert replayed(run, Again(run), perform=False).match is Match.NOTHING


def test_a_damaged_patch_is_named(run):
    digest = record(run).cost.traces["patch"]
    path = run.folder / "traces" / digest[:2] / f"{digest[2:]}.z"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ArchiveCorrupt, match=digest):
        replayed(run, Again(run), perform=False)


def performed(run, tmp_path, **now):
    beside = ReplayRun(run, None, tmp_path / "scratch")
    fields = {"verdict": Verdict.UNRESOLVED, "reason": "2 of 3 tests fail"} | now
    return replayed(run, Again(beside, answer=outcome(beside.traces, **fields)), perform=True)


def test_the_same_work_is_the_same(run, tmp_path):
    record(run)
    assert performed(run, tmp_path).match is Match.SAME


def test_another_patch_is_shown_by_its_first_line_even_with_the_same_verdict(run, tmp_path):
    record(run)
    found = performed(run, tmp_path, patch=PATCH.replace(b"one", b"two"))
    assert found.match is Match.DIFFERENT
    assert found.divergence == Divergence(ACTION, "the patch: line 3: '+one' against '+two'")


def test_a_call_without_a_recorded_reply_is_named(run, tmp_path):
    record(run)
    said = "action 1, call 4: the recording has no reply to this call (messages[3].text: 'a' against 'b')"
    found = performed(run, tmp_path, verdict=Verdict.INVALID, reason=said, patch=None)
    assert found.match is Match.DIFFERENT
    assert found.divergence == Divergence(ACTION, said.partition(": ")[2], 4)


def test_a_failed_sandbox_says_nothing_of_the_record(run, tmp_path):
    record(run)
    found = performed(run, tmp_path, verdict=Verdict.INVALID, reason="no cgroup", patch=None)
    assert found.match is Match.NOT_PERFORMED


@pytest.mark.parametrize("when", ["then", "now"])
def test_work_that_a_time_out_ended_may_come_out_otherwise(run, tmp_path, when):
    record(run, signs=RAN_OUT if when == "then" else WELL)
    found = performed(run, tmp_path, patch=b"", signs=RAN_OUT if when == "now" else WELL)
    assert found.match is Match.CUT_SHORT
    assert f"(the agent ran out of time {when})" in found.divergence.what


@pytest.mark.parametrize(
    ("seconds", "call", "match"),
    [(90, 4, Match.CUT_SHORT), (70, 4, Match.DIFFERENT), (90, 3, Match.DIFFERENT)],
)
def test_an_agent_that_went_by_the_clock_may_go_on_now(run, tmp_path, seconds, call, match):
    record(run, seconds=seconds)
    said = f"action 1, call {call}: the recording has no reply to this call"
    found = performed(run, tmp_path, verdict=Verdict.INVALID, reason=said, patch=None)
    assert found.match is match
    assert ("(the agent worked for 90 s then, with a limit of 100 s)" in found.divergence.what) == (
        match is Match.CUT_SHORT
    )


def test_work_that_was_killed_for_its_memory_may_too(run, tmp_path):
    record(run, signs=WELL | {"exit_code": 137})
    assert performed(run, tmp_path, patch=b"").match is Match.CUT_SHORT


def test_what_was_never_graded_is_no_choice(run):
    record(run)
    with pytest.raises(UserError, match="no graded evaluation of task 'x'"):
        find_graded(run, None, TaskId("x"))
    with pytest.raises(UserError, match="no graded evaluation by agent 3"):
        find_graded(run, [AgentId(3)])


def test_an_invalid_evaluation_is_left_out(run):
    run.append(ActionStarted(ACTION, Evaluate(AgentId(0), TASK)))
    invalid = outcome(run.traces, Verdict.INVALID, "engine gone")
    run.append(TaskGraded(ACTION, invalid))
    with pytest.raises(UserError, match="no graded evaluation"):
        find_graded(run)
