"""Events as JSON, in the form of today and in that of the previous version."""

import json

import pytest

from dgm.archive.adopt import read_event
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentNoted,
    AgentStillborn,
    CallBooked,
    CallRefused,
    CallStarted,
    ChildProposed,
    Control,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    NoteKind,
    PromotionDecided,
    PromotionSpent,
    PromotionStarted,
    RunChanged,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    TasksChanged,
    VerdictWithdrawn,
    action_of,
    decode,
    encode,
    kind_of,
)
from dgm.domain import Born, Budget, Cost, Evaluate, Evaluation, Expand, Stillborn, Usage, Verdict
from dgm.errors import ArchiveCorrupt, UserError

PATCH, COMMIT = "a" * 64, "c" * 40
USAGE, FINER = Usage(1, 20, 3, 0.25), Usage(1, 20, 3, 0.25, 4, 5, 6)
COST = Cost(USAGE, 1.25, {"patch": PATCH})
CALL = {"number": 2, "model": "m", "role": "solve"}
CHILD = {"parents": [0], "commit": COMMIT, "operator": "op", "rationale": "why"}
COSTS = {"seconds": 1.25, "usage": [1, 20, 3, 0.25], "traces": {"patch": PATCH}}
GRADED = {"agent": 0, "task": "t", "attempt": 0, "verdict": "resolved", "reason": ""}
FINDINGS = {"findings": [], "metrics": []}
EARLIER = [
    (CallStarted(1, 2, "m", "solve", USAGE), CALL | {"most": [1, 20, 3, 0.25]}),
    (
        ModelCalled(1, 2, "m", "solve", FINER, 1.25),
        CALL | {"usage": [1, 20, 3, 0.25, 4, 5, 6], "seconds": 1.25},
    ),
    (ModelCalled(1, 2, "m", "solve"), CALL),
    (CallBooked(1, 2, "m", "solve", USAGE, True), CALL | {"usage": [1, 20, 3, 0.25], "open": True}),
    (
        CallRefused(1, "solve", 404, "model", "no"),
        {"role": "solve", "status": 404, "code": "model", "message": "no"},
    ),
    (
        ModelLearned("m", {"stream": False}, "no"),
        {"model": "m", "abilities": {"stream": False}, "words": "no"},
    ),
    (ModelNoted("m", NoteKind.WAITS, "x", 1.5), {"model": "m", "kind": "waits", "words": "x", "until": 1.5}),
    (
        TaskGraded(1, Evaluation(0, "t", 0, Verdict.UNRESOLVED, "café", 0.5, COST), 1),
        GRADED | {"verdict": "unresolved", "reason": "café", "score": 0.5, "again": 1} | COSTS,
    ),
    (TaskGraded(1, Evaluation(0, "t", 0, Verdict.RESOLVED, "")), GRADED),
    (
        VerdictWithdrawn(1, 7, Evaluate(0, "t"), Verdict.RESOLVED, "no", (2, 3)),
        GRADED | {"graded": 7, "reason": "no", "calls": [2, 3]},
    ),
    (ActionStarted(1, Evaluate(0, "t"), True), {"agent": 0, "task": "t", "attempt": 0, "again": True}),
    (
        ActionStarted(1, Expand((0, 1), "op", (2,), (3,), "prompt", 2, ("t",))),
        {"parents": [0, 1], "operator": "op", "evidence": [2], "shown": [3], "aim": "prompt", "case": 2}
        | {"probes": ["t"]},
    ),
    (RunPaused("away"), {"reason": "away"}),
    (ChildProposed(1, Born((0,), "op", COMMIT, "why", COST, "1:ab")), CHILD | {"syntax": "1:ab"} | COSTS),
    (AgentBorn(1, 4, Born((0,), "op", COMMIT, "why"), "a person"), CHILD | {"id": 4, "decided": "a person"}),
    (AgentBorn(1, 4, Born((0,), "op", "", "why")), CHILD | {"id": 4, "commit": "--output=x"}),
    (
        AgentStillborn(1, Stillborn((0,), "op", "check", "no", Cost(seconds=2.0), "time-out")),
        {
            "parents": [0],
            "operator": "op",
            "stage": "check",
            "reason": "no",
            "decided": "time-out",
            "seconds": 2.0,
        },
    ),
    (ActionLost(1, "died", True), {"reason": "died", "final": True}),
    (
        RunStarted(Budget(usd=2.5, patience=3), ("t",), True, True, Control(1.5, 2, 3.0, 4), "6.8.0", "b"),
        {"budget": {"usd": 2.5, "patience": 3}, "tasks": ["t"], "resumed": True, "flips": True}
        | {"control": [1.5, 2, 3.0, 4], "kernel": "6.8.0", "benchmark": "b"},
    ),
    (RunChanged({"limits": {"calls": 3}}), {"settings": {"limits": {"calls": 3}}}),
    (RunStopped("budget"), {"reason": "budget"}),
]
"""Events, and the bodies that the previous version wrote for them."""
LATER = [
    PromotionStarted(1, 0, (1, 2), 0.05, 2),
    PromotionSpent("m", USAGE),
    PromotionDecided(1, 2),
    PromotionDecided(1),
    AgentNoted(1, "too slow"),
    TasksChanged(("a", "b"), ("c",), ("d",)),
]


@pytest.mark.parametrize(("event", "body"), EARLIER)
def test_each_event_comes_back_and_is_read_from_the_previous_form(event, body):
    assert decode(encode(event)) == event
    assert read_event("event 1", kind_of(event), action_of(event), json.dumps(body)) == event


def test_every_kind_of_event_is_in_the_table():
    assert {type(event) for event in [*LATER, *(event for event, _ in EARLIER)]} == set(Event.__args__)


@pytest.mark.parametrize("event", LATER, ids=kind_of)
def test_events_that_the_previous_version_did_not_have_come_back(event):
    assert decode(encode(event)) == event


def test_an_outcome_lies_in_its_event_and_defaults_are_left_out():
    event = TaskGraded(1, Evaluation(0, "t", 0, Verdict.RESOLVED, "", 1.0, Cost(seconds=2.0)))
    assert json.loads(encode(event)) == {
        "event": "task_graded",
        "action": 1,
        "outcome": GRADED
        | FINDINGS
        | {"score": 1.0, "cost": {"usage": json.loads(json.dumps(USAGES)), "seconds": 2.0, "traces": {}}},
    }
    started = ActionStarted(3, Evaluate(0, "t"))
    assert json.loads(encode(started)) == {
        "event": "action_started",
        "id": 3,
        "action": {"type": "evaluate", "agent": 0, "task": "t"},
    }


USAGES = dict.fromkeys(("calls", "input_tokens", "output_tokens", "usd"), 0) | dict.fromkeys(
    ("cached_tokens", "written_tokens", "reasoning_tokens"), 0
)


def test_half_a_surrogate_pair_is_written_out():
    assert decode(encode(RunPaused("a \udcff b"))) == RunPaused("a \\udcff b")
    assert read_event("event 1", "run_paused", None, r'{"reason": "\udcff"}') == RunPaused("\\udcff")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("task_graded", {"agent": -1}),
        ("task_graded", {"agent": True}),
        ("task_graded", {"task": ["x"]}),
        ("task_graded", {"task": "a" * 10_001}),
        ("task_graded", {"verdict": "perhaps"}),
        ("task_graded", {"seconds": "x"}),
        ("task_graded", {"score": 10**18}),
        ("task_graded", {"usage": [10**18, 1, 1, 1.0]}),
        ("task_graded", {"usage": ["a", "b", "c", "d"]}),
        ("task_graded", {"traces": {"log": "../../../etc/passwd"}}),
        ("task_graded", {"traces": {"log": PATCH + "\n"}}),
        ("agent_born", {"parents": "ab"}),
        ("agent_born", {"id": "../x"}),
        ("agent_born", {"commit": ["x"]}),
        ("model_called", {"model": ["m"]}),
        ("model_called", {"number": 10**30}),
        ("action_started", {"agent": -1}),
        ("model_noted", {"until": 1e300}),
        ("rain", {}),
    ],
)
def test_a_value_out_of_bounds_is_refused(kind, changes):
    body = {**CHILD, **CALL, **GRADED, "id": 0, "kind": "waits", "words": "", **changes}
    if kind == "action_started":
        body = {"agent": 0, "task": "t", "attempt": 0, **changes}
    with pytest.raises(ArchiveCorrupt, match=r"^event 7: [^\n]*$"):
        read_event("event 7", kind, 1, json.dumps(body))


@pytest.mark.parametrize("name", ["usd", "seconds", "expansion_cost", "score"])
@pytest.mark.parametrize("limit", [float("nan"), float("inf")])
def test_a_budget_has_finite_limits(name, limit):
    with pytest.raises(ValueError, match="no finite number"):
        Budget(**{name: limit})


def test_a_commit_of_another_form_is_refused_in_the_form_of_today():
    for commit in ("HEAD", COMMIT + "\n", COMMIT.upper(), "c" * 41):
        with pytest.raises(ValueError, match="regex"):
            decode(encode(AgentBorn(1, 4, Born((0,), "op", commit, "why"))))


@pytest.mark.parametrize("body", ["[", "[]", "5", '{"a":' * 9_999, '{"agent": NaN}', '{"reason":9e999}'])
def test_a_body_that_is_no_event_is_refused(body):
    with pytest.raises(ArchiveCorrupt, match=r"^event 7: "):
        read_event("event 7", "run_paused", None, body)


def test_an_event_of_a_still_earlier_version_is_refused():
    with pytest.raises(UserError, match="no longer read"):
        read_event("event 7", "model_called", 1, json.dumps(CALL | {"request": "b" * 64, "reply": "b" * 64}))
