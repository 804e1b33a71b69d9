"""The bytes of every kind of event in the log."""

import json
import re

import pytest

from dgm.archive.codec import KINDS, decode, encode
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    CallBooked,
    CallRefused,
    CallStarted,
    ChildProposed,
    Control,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    NoteKind,
    RunChanged,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.domain import Born, Budget, Cost, Evaluate, Evaluation, Expand, Stillborn, Usage, Verdict

ASKED, ANSWERED, PATCH, COMMIT = "f" * 64, "b" * 64, "a" * 64, "c" * 40
USAGE, FINER = Usage(1, 20, 3, 0.25), Usage(1, 20, 3, 0.25, 4, 5, 6)
COST = Cost(USAGE, 1.23456, {"patch": PATCH})
_EVENTS = [
    (
        CallStarted(1, 2, "m", "solve", ASKED, USAGE),
        '{"number":2,"model":"m","role":"solve","request":"ASKED","most":[1,20,3,0.25]}',
    ),
    (
        ModelCalled(1, 2, "m", "solve", ASKED, ANSWERED, FINER, 1.23456),
        (
            '{"number":2,"model":"m","role":"solve","request":"ASKED","reply":"ANSWERED",'
            '"usage":[1,20,3,0.25,4,5,6],"seconds":1.2346}'
        ),
    ),
    (
        CallBooked(1, 2, "m", "solve", Usage()),
        '{"number":2,"model":"m","role":"solve","usage":[0,0,0,0.0]}',
    ),
    (
        CallBooked(1, 2, "m", "solve", USAGE, True, ASKED),
        '{"number":2,"model":"m","role":"solve","usage":[1,20,3,0.25],"open":true,"request":"ASKED"}',
    ),
    (
        CallRefused(1, "solve", 404, "model", "no"),
        '{"role":"solve","status":404,"code":"model","message":"no"}',
    ),
    (
        ModelLearned("m", {"stream": False}, "no stream"),
        '{"model":"m","abilities":{"stream":false},"words":"no stream","usage":[0,0,0,0.0]}',
    ),
    (
        ModelNoted("m", NoteKind.WAITS, "waits", 1.5),
        '{"model":"m","kind":"waits","words":"waits","until":1.5}',
    ),
    (
        TaskGraded(1, Evaluation(0, "t", 0, Verdict.UNRESOLVED, "caf\u00e9", 0.5, COST), 1),
        (
            '{"agent":0,"task":"t","attempt":0,"verdict":"unresolved","reason":"caf\\u00e9","score":0.5,'
            '"seconds":1.2346,"usage":[1,20,3,0.25],"traces":{"patch":"PATCH"},"again":1}'
        ),
    ),
    (
        TaskGraded(1, Evaluation(0, "t", 0, Verdict.RESOLVED, "")),
        '{"agent":0,"task":"t","attempt":0,"verdict":"resolved","reason":""}',
    ),
    (
        VerdictWithdrawn(1, 7, Evaluate(0, "t"), Verdict.RESOLVED, "no", (2, 3)),
        '{"agent":0,"task":"t","attempt":0,"verdict":"resolved","graded":7,"reason":"no","calls":[2,3]}',
    ),
    (ActionStarted(1, Evaluate(0, "t"), True), '{"agent":0,"task":"t","attempt":0,"again":true}'),
    (
        ActionStarted(1, Expand((0, 1), "op", (2,), (3,), "prompt", 2, ("t",))),
        '{"parents":[0,1],"operator":"op","evidence":[2],"shown":[3],"aim":"prompt","case":2,"probes":["t"]}',
    ),
    (RunPaused("away"), '{"reason":"away"}'),
    (
        ChildProposed(1, Born((0,), "op", COMMIT, "why", COST, "1:ab")),
        (
            '{"parents":[0],"commit":"COMMIT","operator":"op","rationale":"why","syntax":"1:ab",'
            '"seconds":1.2346,"usage":[1,20,3,0.25],"traces":{"patch":"PATCH"}}'
        ),
    ),
    (
        AgentBorn(1, 4, Born((0,), "op", COMMIT, "why", Cost(), "1:ab"), "a person"),
        (
            '{"id":4,"parents":[0],"commit":"COMMIT","operator":"op","rationale":"why","syntax":"1:ab",'
            '"decided":"a person"}'
        ),
    ),
    (
        AgentStillborn(1, Stillborn((0,), "op", "check", "no", Cost(seconds=2.0), "time-out")),
        '{"parents":[0],"operator":"op","stage":"check","reason":"no","decided":"time-out","seconds":2.0}',
    ),
    (ActionLost(1, "died"), '{"reason":"died","final":false}'),
    (
        RunStarted(
            Budget(usd=2.5, score=0.9, patience=3), ("t",), True, True, Control(1.5, 2, 3.0, 4), "6.8.0-45"
        ),
        (
            '{"budget":{"evaluations":null,"agents":null,"usd":2.5,"tokens":null,"seconds":null,"score":0.9,'
            '"patience":3},"tasks":["t"],"resumed":true,"flips":true,"control":[1.5,2,3.0,4],"kernel":"6.8.0-45"}'
        ),
    ),
    (RunChanged({"limits": {"calls": 3}}), '{"settings":{"limits":{"calls":3}}}'),
    (RunStopped("budget"), '{"reason":"budget"}'),
]
NAMED = {"ASKED": ASKED, "ANSWERED": ANSWERED, "PATCH": PATCH, "COMMIT": COMMIT}
EVENTS = [(event, re.sub("|".join(NAMED), lambda found: NAMED[found[0]], body)) for event, body in _EVENTS]


@pytest.mark.parametrize(("event", "body"), EVENTS)
def test_each_event_has_its_bytes(event, body):
    assert encode(event)[2] == body


@pytest.mark.parametrize("body", [body for _, body in EVENTS])
def test_each_body_is_written_again_as_it_was_read(body):
    event = next(event for event, written in EVENTS if written == body)
    kind, action, _ = encode(event)
    assert encode(decode(kind, action, body)) == (kind, action, body)


def test_every_kind_has_an_example():
    assert {encode(event)[0] for event, _ in EVENTS} == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "body", "fault"),
    [
        ("task_graded", '{"agent":0}', "task_graded event without a usable 'task'"),
        ("call_started", '{"number":2}', "call_started event without a usable 'most'"),
        ("run_paused", "[]", "run_paused event without a usable list"),
        ("call_booked", '{"usage":7}', "call_booked event without a usable "),
        (
            "action_lost",
            '{"reason":"died","final":"perhaps"}',
            "usable 'final': Input should be a valid boolean",
        ),
        ("rain", "{}", "unknown kind of event 'rain'"),
    ],
)
def test_a_body_that_is_no_event_is_refused_by_name(kind, body, fault):
    with pytest.raises(ValueError, match=fault):
        decode(kind, 1, body)


GRADED = {"agent": 0, "task": "t", "attempt": 0, "verdict": "resolved", "reason": ""}
BORN = {"id": 0, "parents": [], "commit": COMMIT, "operator": "seed", "rationale": ""}
CALLED = {"number": 1, "model": "m", "role": "solve", "request": ASKED, "reply": ANSWERED}


@pytest.mark.parametrize(
    "commit",
    ["", "c0", f"--output={'a' * 31}", "HEAD", f"{COMMIT}\n", f"{COMMIT}:x", COMMIT.upper(), "c" * 41],
)
def test_a_text_that_is_no_commit_is_read_as_none(commit):
    assert decode("agent_born", 0, json.dumps(BORN | {"commit": commit})).outcome.commit == ""
    assert decode("child_proposed", 1, json.dumps(BORN | {"commit": commit})).outcome.commit == ""
    assert decode("agent_born", 0, json.dumps(BORN | {"commit": "d" * 64})).outcome.commit == "d" * 64


@pytest.mark.parametrize("commit", [None, ["x"], 5])
def test_a_commit_that_is_no_text_is_refused(commit):
    with pytest.raises(ValueError, match="agent_born event without a usable "):
        decode("agent_born", 0, json.dumps(BORN | {"commit": commit}))


@pytest.mark.parametrize(
    ("kind", "body", "key"),
    [
        ("task_graded", GRADED | {"agent": -1}, "agent"),
        ("task_graded", GRADED | {"agent": "../x"}, "agent"),
        ("task_graded", GRADED | {"agent": True}, "agent"),
        ("task_graded", GRADED | {"task": ["x"]}, "task"),
        ("task_graded", GRADED | {"task": "a" * 10_001}, "task"),
        ("task_graded", GRADED | {"seconds": "x"}, "seconds"),
        ("task_graded", GRADED | {"score": 10**18}, "score"),
        ("task_graded", GRADED | {"usage": ["a", "b", "c", "d"]}, "usage"),
        ("task_graded", GRADED | {"usage": [10**18, 1, 1, 1.0]}, "usage"),
        ("task_graded", GRADED | {"usage": [1, 1, 1, 1.0, 1]}, "usage"),
        ("task_graded", GRADED | {"traces": {"log": "../../../etc/passwd"}}, "traces"),
        ("task_graded", GRADED | {"traces": {"log": 5}}, "traces"),
        ("agent_born", BORN | {"parents": "ab"}, "parents"),
        ("agent_born", BORN | {"id": "../x"}, "id"),
        ("model_called", CALLED | {"request": "../x"}, "request"),
        ("model_called", CALLED | {"model": ["m"]}, "model"),
        ("action_started", {"parents": [-1], "operator": "op"}, "parents"),
        ("model_noted", {"model": "m", "kind": "waits", "words": "", "until": 1e300}, "until"),
    ],
)
def test_a_value_that_its_key_never_has_is_refused_by_name(kind, body, key):
    with pytest.raises(ValueError, match=f"{kind} event without a usable '{key}'"):
        decode(kind, 1, json.dumps(body))


@pytest.mark.parametrize(
    "body",
    [
        '{"reason":' + "[" * 200_000,
        '{"reason":"x","more":' + "9" * 5000 + "}",
        '{"more":9e999}',
        '{"more":NaN}',
        "{" * 99,
    ],
)
def test_numbers_and_nesting_of_a_body_are_bounded(body):
    with pytest.raises(ValueError):  # noqa: PT011  (RecursionError and OverflowError are none)
        decode("run_paused", None, body)
