"""Fields of an evaluation's view, its exit code, and its text on the terminal."""

import pytest
from rich.console import Console

from dgm.analysis.budgets import Reason
from dgm.domain import AgentId, Evaluation, Task, TaskId, Usage, Verdict
from dgm.evaluation.schedule import AgentResult, compare_first_attempts
from dgm.render.evaluation_text import incomplete_text, render_evaluation
from dgm.views.evaluation import AgentEvaluation, EvaluationView, PairedTallies
from dgm.views.values import UsageView

EASY, HARD = TaskId("a"), TaskId("b\x1b[2J")
SIGN = {"+": Verdict.RESOLVED, "-": Verdict.UNRESOLVED}


def make_view(verdicts, *, missing=0, reason=Reason.GOAL, given_up=()):
    """The view of agents with a text such as ``+-`` for the attempts at each task."""
    results = [
        AgentResult(
            agent=AgentId(number),
            graded=[
                Evaluation(AgentId(number), task, attempt, SIGN[sign], f"reason of {task}")
                for task, signs in tasks.items()
                for attempt, sign in enumerate(signs)
            ],
            abandoned=dict(given_up),
            missing=missing,
            spend=Usage(calls=2, input_tokens=900, output_tokens=100, usd=0.5),
        )
        for number, tasks in enumerate(verdicts)
    ]
    attempts = max(len(signs) for tasks in verdicts for signs in tasks.values())
    tasks = [Task(task, "suite", "", "", "/work", 60.0, ("t",)) for task in (EASY, HARD)]
    return EvaluationView(
        folder="/runs/one/evaluate",
        benchmark="suite",
        version="1",
        split="holdout",
        model="offline",
        tasks=2,
        attempts=attempts,
        ended=reason,
        message="the end",
        missing=missing,
        agents=[
            AgentEvaluation.of(f"agent {number}", result, tasks, attempts)
            for number, result in enumerate(results)
        ],
        comparison=PairedTallies.of(compare_first_attempts(*results)) if len(results) == 2 else None,
        spend=UsageView.of(sum((result.spend for result in results), Usage())),
    )


def test_first_attempts_count_and_all_attempts_tell_what_is_flaky():
    (agent,) = make_view([{EASY: "+-", HARD: "--"}]).agents
    assert (agent.tally.resolved, agent.tally.n) == (1, 2)
    assert (agent.any_attempt.resolved, agent.all_attempts.n) == (1, 4)
    assert {task: tried.outcome for task, tried in agent.outcomes.items()} == {
        EASY: "sometimes",
        HARD: "never",
    }
    assert (agent.resolved, agent.unresolved) == ((EASY,), {HARD: f"reason of {HARD}"})
    assert agent.usd_per_resolved == 0.5


def test_a_task_with_a_missing_attempt_has_no_outcome():
    (agent,) = make_view([{EASY: "++", HARD: "+"}], missing=1).agents
    assert list(agent.outcomes) == [EASY]


def test_two_agents_are_compared_on_common_tasks():
    view = make_view([{EASY: "-", HARD: "-"}, {EASY: "+", HARD: "-"}])
    assert (view.comparison.gained, view.comparison.lost) == ((EASY,), ())
    assert view.spend.usd == 1.0


@pytest.mark.parametrize(
    ("missing", "reason", "given_up", "code"),
    [
        (0, Reason.GOAL, {}, 0),
        (0, Reason.NOTHING_LEFT, {HARD: "no network"}, 1),
        (1, Reason.LIMIT, {}, 3),
        (1, Reason.STOPPED, {}, 130),
        (1, Reason.REFUSED, {}, 2),
        (1, Reason.OUTAGE, {}, 1),
    ],
)
def test_exit_code_says_why_something_is_missing(missing, reason, given_up, code):
    view = make_view([{EASY: "+"}], missing=missing, reason=reason, given_up=given_up)
    assert view.exit_code == code
    assert bool(incomplete_text(view)) == (code != 0)


def test_text_is_complete_and_neutralised():
    console = Console(width=120, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(render_evaluation(make_view([{EASY: "+-", HARD: "--"}])))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert lines == [
        "2 holdout tasks of suite with offline; 95 % Wilson intervals over tasks",
        "  agent 0  1/2 50% [9–91%]  0.50 USD, 0.50 USD per resolved task",
        "agent 0: all 2 attempts 1/4 25%; at least once 1/2 50% [9–91%]; tasks resolved always 0, sometimes 1, never 1",
        "agent 0 sometimes resolved: a 1/2",
        r"agent 0 unresolved b\x1b[2J: reason of b\x1b[2J",
        "recorded in /runs/one/evaluate; 2 model calls, 1,000 tokens, 0.50 USD",
    ]
