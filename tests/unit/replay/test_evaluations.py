"""Evaluations that are done again, by a worker and a benchmark that do as they are told."""

import asyncio
import json
import sqlite3
from contextlib import closing
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
from dgm.replay.again import (
    Divergence,
    Match,
    Replayer,
    ReplayOptions,
    ReplayRun,
    choose_sandbox,
    find_graded,
    repeat_evaluations,
)

pytestmark = pytest.mark.starts_processes

TASK, ACTION = TaskId("task"), ActionId(1)
PATCH = b"--- a\n+++ b\n+one\n"
WELL = {"exit_code": 0, "timed_out": False, "truncated": False, "crashed": False}
RAN_OUT = WELL | {"exit_code": 124, "timed_out": True}
KILLED = WELL | {"exit_code": 137}


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

    async def perform(self, action, what):
        assert (action, what) == (ACTION, Evaluate(AgentId(0), TASK, 0))
        return self.answer


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(evaluations=9), (TASK,)))
        commit = made.repository.commit({"a": Entry(b"")}, ())
        made.append(made.birth(Born((), "seed", commit, ""), ActionId(0)))
        yield made


def outcome(
    traces, verdict=Verdict.UNRESOLVED, reason="2 of 3 tests fail", patch=PATCH, signs=WELL, seconds=0.0
):
    kept = {} if patch is None else {"patch": traces.put(patch)}
    kept["circumstances"] = traces.put(json.dumps(signs).encode())
    return Evaluation(AgentId(0), TASK, 0, verdict, reason, 0.0, Cost(Usage(calls=3), seconds, kept))


def record(run, **fields):
    recorded = outcome(run.traces, **fields)
    run.append(ActionStarted(ACTION, Evaluate(AgentId(0), TASK)))
    run.append(TaskGraded(ACTION, recorded))
    return recorded


def replayed(run, worker, unanswered=None):
    chosen = find_graded(run)
    replayer = Replayer(run, worker, unanswered or {})
    options = ReplayOptions(perform=worker.answer is not None)
    return asyncio.run(repeat_evaluations(replayer, chosen, options))[ACTION]


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
    found = replayed(run, Again(run, grades=grade))
    assert found.match is match
    assert found.divergence == (Divergence(ACTION, what) if what else None)


def test_notes_on_resolved_work_are_no_difference_when_its_patch_is_graded_again(run):
    record(run, verdict=Verdict.RESOLVED, reason="all pass (left out: a.bin)")
    assert replayed(run, Again(run, grades=Grade(Verdict.RESOLVED, "all pass", 1.0))).match is Match.SAME


def test_where_no_patch_was_left_there_is_nothing_to_grade(run):
    record(run, patch=None, reason="patch: too large")
    assert replayed(run, Again(run)).match is Match.NOTHING


def test_a_damaged_patch_is_named(run):
    digest = record(run).cost.traces["patch"]
    with closing(sqlite3.connect(run.folder / "run.db")) as log, log:
        log.execute("UPDATE blobs SET zlib = substr(zlib, 1, 9) WHERE sha256 = ?", (digest,))
    with pytest.raises(ArchiveCorrupt, match=digest):
        replayed(run, Again(run))


MISSING = {"verdict": Verdict.INVALID, "reason": "action 1, call 4: no", "patch": None}
LATE_TEXT = "no (the agent worked for 90 s then, with a limit of 100 s)"


@pytest.mark.parametrize(
    ("then", "now", "call", "match", "what"),
    [
        ({}, {}, None, Match.SAME, None),
        # Another patch is shown by its first line, even with the same verdict.
        (
            {},
            {"patch": PATCH.replace(b"one", b"two")},
            None,
            Match.DIFFERENT,
            "the patch: line 3: '+one' against '+two'",
        ),
        ({}, {"patch": None}, None, Match.DIFFERENT, "the patch: there was one, now there is none"),
        ({}, MISSING, 4, Match.DIFFERENT, "no"),
        ({}, MISSING, None, Match.NOT_PERFORMED, "the infrastructure failed: action 1, call 4: no"),
        # Work that a time-out or a limit of memory ended may come out otherwise.
        ({"signs": RAN_OUT}, {"patch": None}, None, Match.CUT_SHORT, "(the agent ran out of time then)"),
        ({}, {"patch": None, "signs": RAN_OUT}, None, Match.CUT_SHORT, "(the agent ran out of time now)"),
        (
            {"signs": KILLED},
            {"patch": None},
            None,
            Match.CUT_SHORT,
            "(the agent was killed for its memory then)",
        ),
        # An agent that went by the clock may go on now, after its last recorded call.
        ({"seconds": 90}, MISSING, 4, Match.CUT_SHORT, LATE_TEXT),
        ({"seconds": 70}, MISSING, 4, Match.DIFFERENT, "no"),
        ({"seconds": 90}, MISSING, 3, Match.DIFFERENT, "no"),
    ],
)
def test_work_that_is_done_again(run, tmp_path, then, now, call, match, what):
    record(run, **then)
    beside = ReplayRun(run, tmp_path / "scratch")
    unanswered = {} if call is None else {ACTION: (call, "no")}
    found = replayed(run, Again(beside, answer=outcome(beside.traces, **now)), unanswered)
    assert found.match is match
    if what is None:
        assert found.divergence is None
    else:
        assert found.divergence.call == call
        assert found.divergence.what.endswith(what)


def test_what_was_never_graded_is_no_choice(run):
    run.append(ActionStarted(ACTION, Evaluate(AgentId(0), TASK)))
    run.append(TaskGraded(ACTION, outcome(run.traces, Verdict.INVALID, "engine gone")))
    for agents, task, message in (
        (None, None, "no graded evaluation"),
        (None, TaskId("x"), "no graded evaluation of task 'x'"),
        ([AgentId(3)], None, "no graded evaluation by agent 3"),
    ):
        with pytest.raises(UserError, match=message):
            find_graded(run, agents, task)


@pytest.mark.parametrize("kind", ["auto", "absent", "no-engine-here"])
def test_a_kind_of_sandbox_that_is_not_here_becomes_auto(kind):
    assert choose_sandbox(SimpleNamespace(sandbox=lambda until: kind)) == "auto"
