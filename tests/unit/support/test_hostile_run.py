"""The hostile run opens, and what is written for programs about it is sound."""

import json
import unicodedata

import pytest

from dgm.archive.run import Run
from dgm.archive.verifying import verify
from dgm.domain import AgentId
from dgm.evaluation.control import FOLDER
from dgm.evaluation.results import compare_agents
from dgm.views.run import RunView
from tests.support.runs.hostile import KINDS, TASKS, hostile, hostile_folder

pytestmark = pytest.mark.starts_processes

__all__ = ["hostile_folder"]


@pytest.mark.starts_processes
def test_it_opens_and_holds_every_kind_of_text(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        assert len(run.tree.agents) == len(KINDS) + 2
        assert [agent.rationale for agent in run.tree.agents[1:-1]] == list(KINDS)
        assert run.tree.tasks == TASKS
        assert (run.tree.evaluations, run.tree.invalid, len(run.tree.waiting)) == (26, 1, 1)
        controls = {unicodedata.category(c) for agent in run.tree.agents for c in agent.rationale}
        assert controls >= {"Cc", "Cf", "Cs", "Mn", "Lo", "So", "Zl", "Zp"}
        assert json.loads(json.dumps(RunView.load(run).model_dump(mode="json")))["agents"] == len(
            run.tree.agents
        )


@pytest.mark.starts_processes
def test_its_sources_and_traces_are_whole(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        assert run.source(AgentId(3))["link"].data == b"/etc/passwd"
    assert verify(hostile_folder)["agents"] == len(KINDS) + 2


def test_its_examination_compares_two_candidates(hostile_folder) -> None:
    with Run.open(hostile_folder / FOLDER) as exam:
        assert compare_agents(exam, AgentId(0), AgentId(1)).gained == TASKS


def test_one_that_did_not_stop_has_actions_under_way(tmp_path) -> None:
    made = hostile(tmp_path, stopped=False)
    assert len(made.run.tree.pending) == 2
    assert not made.run.tree.stop_reason
    made.run.close()
