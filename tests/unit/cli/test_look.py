"""Lists of a run: a large tree is printed before its best agent is known."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dgm.archive.events import AgentBorn, Event, TaskGraded
from dgm.cli.look import STARRED, tree
from dgm.domain import SEED, ActionId, AgentId, Evaluation, TaskId, Verdict
from tests.support.runs.packable import begin


def shown(folder: Path, agents: int) -> list[str]:
    with begin(folder, {"policy": {"name": "hgm"}}) as run:
        births: list[Event] = [
            AgentBorn(ActionId(0), AgentId(n), (SEED,), f"{n:040x}", "op", "") for n in range(1, agents)
        ]
        graded = Evaluation(AgentId(2), TaskId("a"), 0, Verdict.RESOLVED, "")
        run.append_many([*births, TaskGraded(ActionId(1), graded)])
    done = CliRunner().invoke(tree, [str(folder)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output.splitlines()


def test_a_tree_that_is_searched_at_once_has_a_star(tmp_path: Path) -> None:
    lines = shown(tmp_path / "few", 5)
    assert [line.split()[1] for line in lines[:5] if "★" in line] == ["2"]
    assert lines[5].startswith("★ best  agent 2: 1/1 100%")
    assert len(lines) == 5 + 2


@pytest.mark.slow
def test_a_large_tree_names_its_best_agent_below(tmp_path: Path) -> None:
    lines = shown(tmp_path / "many", STARRED + 1)
    assert len(lines) == STARRED + 1 + 2
    assert lines[-2].startswith("★ best  agent 2: 1/1 100%")
    assert not any("★" in line for line in lines[:-2])


def test_a_run_without_an_agent_has_an_empty_tree(tmp_path: Path) -> None:
    from dgm.archive.run import Run

    Run.create(tmp_path / "none", {"settings": {}}).close()
    assert CliRunner().invoke(tree, [str(tmp_path / "none")], catch_exceptions=False).output == ""
