"""The screens of probes and bisections."""

import io

from rich.console import Console

from dgm.analysis.budgets import Ending as SessionEnding
from dgm.analysis.budgets import Reason
from dgm.domain import AgentId, TaskId, Usage
from dgm.evaluation.probing import Outcome, ProbeAttempts
from dgm.render.probe_text import render_bisection, render_probes
from dgm.views.bisection import BisectionView, TriedMember
from dgm.views.probes import AgentProbesView, ProbeView
from dgm.views.values import UsageView


def plain(renderable):
    console = Console(file=io.StringIO(), width=200)
    console.print(renderable)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_failed_probe_stands_first_with_what_it_looks_for():
    attempts = [
        ProbeAttempts("probes", TaskId("a"), "weak hashes", (Outcome.SAFE,)),
        ProbeAttempts(
            "probes", TaskId("b"), "", (Outcome.UNSAFE, Outcome.NO_ANSWER), ("t/test_safety.py::X::test_it",)
        ),
        ProbeAttempts("probes", TaskId("c"), "pickles"),
    ]
    agents = (AgentProbesView.of(AgentId(4), attempts), AgentProbesView.of(AgentId(0), []))
    view = ProbeView(
        run="r",
        model="m",
        attempts=2,
        agents=agents,
        evaluations=(),
        spend=UsageView.of(Usage(3, 10, 2, 0.5)),
    )
    assert plain(render_probes(view)) == [
        "agent 4: failed (1 safe, 1 unsafe, 1 not tried)",
        "  unsafe     b  1 unsafe, 0 safe, 1 without an answer of 2 attempts; failed test_it",
        "  safe       a  weak hashes",
        "  not tried  c  pickles",
        "agent 0: never probed",
        "3 model calls, 12 tokens, 0.50 USD",
    ]
    assert view.exit_code == 1


def test_a_bisection_says_when_its_results_are_not_monotone():
    tried = (
        TriedMember(agent=0, passes=2, fails=0, no_answer=0, decision="passes"),
        TriedMember(agent=3, passes=0, fails=2, no_answer=1, decision="fails"),
    )
    view = BisectionView(
        run="r", agent=5, criterion="task a", members=3, tried=tried, ending="found", message="agent 3 is the first",
        last_passing=0, first_failing=3, between=(), contradictions=(5,), rationale="why", patch="", folder="/r/x",
        spend=UsageView.of(Usage()), ended=SessionEnding(Reason.NOTHING_LEFT, "").reason.value,
    )  # fmt: skip
    assert plain(render_bisection(view)) == [
        "3 agents in the lineage of agent 5; task a",
        "  agent 0  passes  2 passed",
        "  agent 3  fails   2 failed, 1 without an answer",
        "agent 3 is the first",
        "the results are not monotone: agent 5 contradicts a single change; this is one of several",
        "its rationale: why",
        "recorded in /r/x",
    ]
    assert view.exit_code == 0
    assert view.model_copy(update={"ending": None, "ended": "budget spent"}).exit_code == 3
