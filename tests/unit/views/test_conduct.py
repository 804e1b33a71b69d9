"""What counts against agents, in views and on the terminal."""

import io

import pytest
from rich.console import Console

from dgm.archive.events import ActionStarted, CallRefused, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId, Born, Budget, Entry, Evaluate, Evaluation, Finding, TaskId, Verdict
from dgm.domain import FindingKind as Kind
from dgm.render.text import render_agent, render_tree
from dgm.views.agents import AgentView, TreeView
from dgm.views.conduct import DriftView
from dgm.views.events import describe

pytestmark = pytest.mark.starts_processes

TOOK = Finding(Kind.CANARY, "holds the mark of a canary", "rates.py:12")
KNOWS = Finding(Kind.SPECIAL_CASE, "names a task of the benchmark", "agent.py:1")
TASK = TaskId("a-task")


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(), (TASK,)))
        for source, parents, findings in ((b"seed", (), ()), (b"a child", (0,), (KNOWS,))):
            commits = [made.tree.agents[parent].commit for parent in parents]
            commit = made.repository.commit({"agent.py": Entry(source)}, commits)
            child = Born(tuple(map(AgentId, parents)), "op", commit, "why", findings=findings)
            made.append(made.birth(child, ActionId(0)))
        yield made


def grade(run, agent, *findings):
    action = run.tree.next_action
    run.append(ActionStarted(action, Evaluate(AgentId(agent), TASK)))
    run.append(CallRefused(action, "solve", 400, "unsupported_parameter", "no"))
    outcome = Evaluation(AgentId(agent), TASK, 0, Verdict.RESOLVED, "all tests pass", 1.0, findings=findings)
    run.append(TaskGraded(action, outcome))
    return outcome


def printed(*parts):
    console = Console(file=io.StringIO(), width=160)
    console.print(*parts, sep="\n")
    return console.file.getvalue()


def test_findings_stand_in_the_tree_only_if_there_are_some(run):
    grade(run, 1, TOOK)
    view = TreeView.load(run, AgentId(0))
    assert [(row.findings, row.clade_findings) for row in view.agents] == [(0, 2), (2, 2)]
    text = printed(*render_tree(view))
    assert "clade 2" in text
    assert "⚑ 2" in text
    honest = view.model_copy(
        update={"agents": tuple(row.model_copy(update={"clade_findings": 0}) for row in view.agents)}
    )
    assert "⚑" not in printed(*render_tree(honest))


def test_an_agent_shows_each_finding_with_its_place(run, monkeypatch):
    grade(run, 1, TOOK)
    view = AgentView.load(run, run.tree.agents[1], AgentId(0))
    assert [finding.location for finding in view.evaluations[0].findings] == ["rates.py:12"]
    assert "canary-taken: rates.py:12: holds the mark of a canary" in printed(render_agent(view))


def test_an_event_names_the_kinds(run):
    outcome = grade(run, 1, TOOK, TOOK, KNOWS)
    assert describe(TaskGraded(ActionId(1), outcome))[1].endswith("[misconduct: canary-taken, special-case]")


def test_drift_has_a_step_for_each_agent_of_the_line(run):
    grade(run, 0)
    grade(run, 1, TOOK)
    seed, child = DriftView.load(run, [AgentId(0), AgentId(1)]).steps
    assert (seed.findings, seed.source_bytes, seed.evaluations, seed.refusals) == (0, 4, 1, 1)
    assert (child.findings, child.source_bytes, child.evaluations, child.refusals) == (2, 7, 1, 1)
