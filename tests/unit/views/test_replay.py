"""Fields, exit codes and texts of replays."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from rich.console import Console

from dgm.analysis.budgets import Ending, Reason
from dgm.domain import ActionId, AgentId, CommitId, Evaluate, Evaluation, Expand, TaskId, Usage, Verdict
from dgm.render.evaluation_text import render_replay
from dgm.replay.again import Divergence, EvaluationAgain, Match, StepAgain
from dgm.replay.decisions import Decision, Decisions
from dgm.views.replay import DecisionsReplay, EvaluationReplay, LiveReplay, RecordReplay

TASK = TaskId("a\x1b[2J")


class NamedRun:
    """A run of which only the name is asked for."""

    name = "first"


def print_view(view):
    console = Console(width=160, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(render_replay(view))
    return [line.rstrip() for line in capture.get().splitlines()]


def make_step(agent, match, what=""):
    divergence = Divergence(ActionId(3), what, 2) if what else None
    return StepAgain(AgentId(agent), ActionId(3), match, CommitId("ab" * 20), None, divergence, 1.0)


def test_first_differing_decision_is_data_and_text():
    first = Decision(7, ActionId(4), Evaluate(AgentId(1), TASK), Expand((AgentId(0),), "edit", aim="x"))
    view = DecisionsReplay.of(NamedRun, Decisions(asked=9, differing=2, first=first, seconds=1.0))
    assert (view.identical, view.exit_code) == (False, 1)
    record = view.model_dump(mode="json")["first"]
    assert (record["did"]["task"], record["says"]["operator"]) == (TASK, "edit")
    assert print_view(view) == [
        r"event 7, action 4: the run did: evaluate agent 1 on a\x1b[2J; the policy says now: expand agent 0 by edit:x",
        "2 of 9 decisions differ, the first is above; 1 s",
    ]


@pytest.mark.parametrize(
    ("matches", "identical", "code"),
    [
        ([Match.SAME, Match.SAME], True, 0),
        ([Match.SAME, Match.DIFFERENT], False, 1),
        ([Match.NOT_PERFORMED], False, 1),
        ([Match.CUT_SHORT, Match.NOTHING], False, 0),
    ],
)
def test_exit_code_of_a_replay_follows_from_its_matches(matches, identical, code):
    steps = [make_step(agent, match) for agent, match in enumerate(matches)]
    view = RecordReplay.of(NamedRun, "lineage", 1.0, steps=steps)
    assert (view.identical, view.exit_code, view.agent) == (identical, code, len(matches) - 1)
    assert sum(view.model_dump(mode="json")["counts"].values()) == len(matches)


def test_what_differs_is_printed_neutralised():
    done = EvaluationAgain(
        ActionId(3),
        Evaluation(AgentId(1), TASK, 0, Verdict.RESOLVED, "all pass"),
        Match.DIFFERENT,
        Verdict.UNRESOLVED,
        "1 fails",
        Divergence(ActionId(3), "resolved then, unresolved now: \x07", None),
        2.0,
    )
    view = RecordReplay.of(NamedRun, "work", 2.0, evaluations=[EvaluationReplay.of(done)])
    assert (view.evaluations[0].attempt, view.evaluations[0].again.verdict) == (1, "unresolved")
    assert print_view(view) == [
        r"differs          agent 1    a\x1b[2J: action 3: resolved then, unresolved now: \x07",
        "1 evaluation performed again: 1 differs; 2 s",
    ]


@pytest.mark.parametrize(
    ("reason", "code"), [(Reason.NOTHING_LEFT, 0), (Reason.LIMIT, 3), (Reason.OUTAGE, 1)]
)
def test_live_evaluations_are_compared_with_the_record(reason, code):
    recorded, live = (SimpleNamespace(name="first", folder="/runs/live", tree=Mock()) for _ in range(2))
    recorded.tree.verdict = lambda _, task: Verdict.RESOLVED if task == "b" else Verdict.UNRESOLVED
    live.tree.spend = Usage(usd=1.0)
    pairs = {(AgentId(0), "a"): Verdict.RESOLVED, (AgentId(0), "b"): None}
    view = LiveReplay.of(recorded, live, "openai/m", pairs, Ending(reason, "the end"))
    assert (view.exit_code, view.missing, view.agents[0].gained) == (code, 1, ("a",))
    assert print_view(view) == [
        "1 pair of agent and task; 95 % Wilson intervals",
        "  recorded  0/1 0% [0–79%]",
        "  openai/m  1/1 100% [21–100%]",
        "1 gained, 0 lost on 1 task; exact McNemar p = 1.000",
        "gained: agent 0 a",
        "recorded in /runs/live; 0 model calls, 0 tokens, 1.00 USD",
    ]
