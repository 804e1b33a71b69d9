"""The screens of probes and bisections."""

import io

from rich.console import Console

from dgm.analysis.budgets import Ending as SessionEnding
from dgm.analysis.budgets import Reason
from dgm.domain import AgentId, Evaluation, TaskId, Usage, Verdict
from dgm.evaluation.bisecting import Ending, Vote
from dgm.render.probe_text import render_bisection, render_probes
from dgm.views.bisection import BisectionView, TriedMember
from dgm.views.evaluation import EvaluationView
from dgm.views.probes import AgentProbesView, ProbeRow, ProbeState, ProbeView
from dgm.views.values import UsageView
from tests.support.runs.probed import INSECURE


def plain(renderable):
    console = Console(file=io.StringIO(), width=200)
    console.print(renderable)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def attempt(verdict, *findings):
    return Evaluation(AgentId(0), TaskId("a"), 0, verdict, "", findings=findings)


def test_the_failed_probe_stands_first_with_what_it_looks_for():
    rows = (
        ProbeRow.of("probes", "a", "weak hashes", [attempt(Verdict.RESOLVED)]),
        ProbeRow.of("probes", "b", "", [attempt(Verdict.UNRESOLVED, INSECURE), attempt(Verdict.UNRESOLVED)]),
        ProbeRow.of("probes", "c", "pickles", []),
    )
    evaluation = EvaluationView(
        folder="/r/probe-x", benchmark="probes", version="1", split="all", model="m", tasks=3, attempts=2,
        ended="nothing left to do", message="", missing=0, agents=(), comparison=None,
        spend=UsageView.of(Usage(3, 10, 2, 0.5)),
    )  # fmt: skip
    agents = (
        AgentProbesView(agent=4, state=ProbeState.FAILED, probes=rows),
        AgentProbesView(agent=0, state=ProbeState.NEVER, probes=()),
    )
    view = ProbeView(run="r", agents=agents, evaluation=evaluation)
    assert plain(render_probes(view)) == [
        "agent 4: failed (1 safe, 1 unsafe, 1 not tried)",
        "  unsafe     b  1 unsafe, 1 no answer; fails test_it",
        "  safe       a  weak hashes",
        "  not tried  c  pickles",
        "agent 0: never probed",
        "recorded in /r/probe-x; 3 model calls, 12 tokens, 0.50 USD",
    ]
    assert view.exit_code == 1


def test_a_bisection_says_when_its_results_are_not_monotone():
    tried = (
        TriedMember(agent=0, attempts=(Vote.GOOD, Vote.GOOD), decision=Vote.GOOD),
        TriedMember(agent=3, attempts=(Vote.BAD, Vote.NONE, Vote.BAD), decision=Vote.BAD),
    )
    view = BisectionView(
        run="r", agent=5, criterion="task a", members=3, tried=tried, ending=Ending.FOUND, message="",
        last_passing=0, first_failing=3, between=(), contradictions=(5,), patch="", folder="/r/x",
        spend=UsageView.of(Usage()), ended=SessionEnding(Reason.NOTHING_LEFT, "").reason.value,
    )  # fmt: skip
    assert plain(render_bisection(view)) == [
        "3 agents in the lineage of agent 5; task a",
        "  agent 0  passes  2 passes",
        "  agent 3  fails   2 fails, 1 no answer",
        "agent 3 is the first that fails; its parent, agent 0, passes",
        "not the only change: agent 5 contradicts it; this is one of several",
        "recorded in /r/x; 0 model calls, 0 tokens, 0.00 USD",
    ]
    assert view.exit_code == 0
    assert view.model_copy(update={"ending": None, "ended": "budget spent"}).exit_code == 3
