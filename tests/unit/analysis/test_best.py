"""There is one best agent, the recommended one, and one lower bound beside it."""

from dataclasses import replace

import pytest

from dgm.analysis.agents import best_of
from dgm.archive.events import AgentBorn
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import CommitId, Tally
from dgm.stats import lower_bound
from dgm.views.agents import TreeView
from tests.support.runs.trees import Log


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Agent 1 has the highest rate by two lucky verdicts, agent 2 the most reason to be believed in."""
    log = Log()
    log.born()
    log.graded(0, [True] * 5 + [False] * 5)
    log.graded(log.born(0), [True] * 2)
    log.graded(log.born(0), [True] * 9 + [False])
    settings = Settings().model_dump(mode="json")
    with Run.create(
        tmp_path_factory.mktemp("best") / "run", {"settings": settings, "sandbox": "bubblewrap"}
    ) as made:
        for recorded in log.events:
            event = recorded.event
            if isinstance(event, AgentBorn):
                event = AgentBorn(event.action, event.id, replace(event.outcome, commit=CommitId("c" * 40)))
            made.append(event)
        yield made


@pytest.mark.parametrize("policy", ["hgm", "lineage", "greedy"])
def test_best_is_what_the_policy_recommends_with_the_bound_of_its_own_verdicts(run, policy):
    run.config["settings"]["policy"]["name"] = policy
    assert best_of(run) == 2, "never the highest rate so far"
    row = TreeView.load(run).agents[2]
    assert (row.best, row.own.resolved, row.own.n) == (True, 9, 10)
    assert row.lower_bound == pytest.approx(lower_bound(Tally(9, 1)))
