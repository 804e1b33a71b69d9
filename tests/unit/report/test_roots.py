"""A run that starts from several agents: how it is created, and how a report compares them."""

from types import SimpleNamespace

import pytest

from dgm.api.search import settings_of_arguments
from dgm.archive.run import Run
from dgm.assemble import RunParts, create, record_resume
from dgm.config import Settings
from dgm.domain import AgentId, Budget, Evaluate, TaskId, Verdict
from dgm.render.html.page import render_page
from dgm.render.report_text import root_text
from dgm.views.report import ReportView
from tests.support.runs.builder import RunBuilder
from tests.unit.report.conftest import Page
from tests.unit.report.test_reproduction import resolved

pytestmark = pytest.mark.starts_processes

SETTINGS = Settings(model="offline", seed_agent=["plain", "solid"], operator="self-edit+crossover")
TASKS = (TaskId("a"), TaskId("b"))
PARTS = RunParts(SimpleNamespace(name="bubblewrap"), SimpleNamespace(version="1", tasks=lambda _: ()))


@pytest.fixture
def forest(tmp_path):
    with create(tmp_path / "forest", SETTINGS, PARTS) as run:
        yield run


def test_roots_are_the_first_agents_and_told_apart(forest):
    assert forest.tree.roots == [0, 1]
    assert [agent.rationale for agent in forest.tree.agents] == [
        "plain: one of the agents that the search starts from",
        "solid: one of the agents that the search starts from",
    ]
    assert "agent/editing.py" in forest.source(AgentId(1))
    assert [agent.action for agent in forest.tree.agents] == [0, 0]


def test_a_root_that_a_killed_creation_lacks_is_added_at_the_resume(tmp_path):
    with (
        create(tmp_path / "whole", SETTINGS, PARTS) as whole,
        Run.create(tmp_path / "cut", whole.config) as cut,
    ):
        for recorded in [*whole.store.read(0)][:2]:
            cut.append(recorded.event)
        cut.repository.commit(whole.source(AgentId(0)), ())
        assert len(cut.tree.agents) == 1
        for _ in range(2):
            record_resume(cut, Budget(), PARTS)
            assert [agent.commit for agent in cut.tree.agents] == [
                agent.commit for agent in whole.tree.agents
            ]


def test_the_report_compares_the_roots_and_counts_a_crossing_for_both(forest):
    builder = RunBuilder(forest)
    child = builder.bear(forest.source(AgentId(0)), (0, 1), operator="crossover")
    for agent, verdict in ((0, Verdict.UNRESOLVED), (1, Verdict.RESOLVED), (child, Verdict.RESOLVED)):
        for task in TASKS:
            builder.record_verdict(builder.begin(Evaluate(AgentId(agent), task)), agent, task, verdict)
    view = ReportView.load(forest)
    assert view.resolved == 4
    assert [(root.agent, root.name, root.agents, root.children) for root in view.roots] == [
        (0, "plain", 2, 1),
        (1, "solid", 2, 1),
    ]
    assert [(root.own.resolved, root.own.n, root.clade.resolved, root.clade.n) for root in view.roots] == [
        (0, 2, 2, 4),
        (2, 2, 4, 4),
    ]
    assert [root.best.agent for root in view.roots] == [child, 1]
    assert root_text(view.roots[0]).startswith(
        "agent 0 plain 0/2 0% [0–66%]; clade 2/4 50% [15–85%] of 2 agents, its best 2"
    )
    page = Page(render_page(view))
    assert "Where the search started" in page.text
    assert "1 solid" in page.text


def test_the_option_is_repeated_and_its_command_gives_the_settings_again():
    assert settings_of_arguments(agent=["plain", "solid"])["seed_agent"] == ["plain", "solid"]
    assert settings_of_arguments(agent=["plain"])["seed_agent"] == "plain"
    words = "dgm run --seed-agent plain --agent solid --model offline"
    assert resolved(words).seed_agent == ("plain", "solid")
