"""The live panel: a bar for every limit, a number where there is none."""

from pathlib import Path

import pytest

from dgm.archive.events import ChildProposed
from dgm.cli.progress import show_progress
from dgm.domain import SEED, Born
from tests.support.runs.packable import begin, evaluate

pytestmark = pytest.mark.slow


def test_how_to_answer_for_children_is_told_once(tmp_path: Path, capsys) -> None:
    with begin(tmp_path / "run") as run, show_progress(run, quiet=False) as shown:
        for commit in ("c" * 40, "d" * 40):
            action = run.tree.next_action + len(run.tree.waiting)
            shown.event(run.append(ChildProposed(action, Born((SEED,), "op", commit, "longer"))))
    out = capsys.readouterr().out
    assert out.count("waits for approval: longer") == 2
    assert out.count("dgm approve run") == 1


def test_counts_of_named_agents_are_shown_with_the_time_left(tmp_path: Path, capsys) -> None:
    counts = {"seed": (0, 20), "best (37)": (0, 20)}
    with begin(tmp_path / "run") as run:
        evaluate(run, "it")
        *_, graded = run.store.read()
        with show_progress(run, quiet=False, names={SEED: "seed"}, counts=lambda: counts) as shown:
            counts.update({"seed": (12, 20), "best (37)": (3, 20)})
            shown.event(graded)
            shown.event(graded)
    lines = capsys.readouterr().out.splitlines()
    # The second event comes within a quarter of a minute, so that it has no line of counts.
    assert len(lines) == 3
    assert "seed 12/20 · best (37) 3/20 · about" in lines[1]
