"""The live panel: a bar for every limit, a number where there is none."""

from pathlib import Path

import pytest

from dgm.archive.events import ChildProposed, RunStarted
from dgm.cli.progress import limit_line, panel_lines, show_progress
from dgm.domain import SEED, Born, Budget, TaskId
from dgm.views.progress import BudgetUse
from tests.support.runs.packable import begin, child, evaluate

pytestmark = pytest.mark.slow


def use(used: float) -> BudgetUse:
    return BudgetUse(used=used, limit=100.0, left=100.0 - used, share=used / 100.0)


def test_every_limit_has_a_bar(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        run.append(RunStarted(Budget(4, 8, 2.0, 60, 100.0), (TaskId("a"),)))
        evaluate(run, "it")
        shown = [line.plain for line in panel_lines(run, {}, None)]
    assert shown[:4] == [
        "evaluations  █████░░░░░░░░░░░░░░░ 1 of 4 25%",
        "agents       ██░░░░░░░░░░░░░░░░░░ 1 of 8 12%; stillborn 0, invalid 0",
        "money        ░░░░░░░░░░░░░░░░░░░░ 0.00 of 2.00 USD 0%",
        "tokens       █████░░░░░░░░░░░░░░░ 15 of 60 25% in 3 calls",
    ]
    time = limit_line("time", use(50.0), "", ", more").plain
    assert time == "time         ██████████░░░░░░░░░░ 50 s of 1 min 40 s 50%, more"


def test_what_has_no_limit_is_a_number(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        run.append(RunStarted(Budget(), (TaskId("a"),)))
        child(run)
        shown = [line.plain for line in panel_lines(run, {}, None)]
    assert shown[:2] == ["evaluations  0", "agents       2; stillborn 0, invalid 0"]
    assert not any("█" in each or "░" in each for each in shown)
    assert limit_line("time", None, "1 min 1 s").plain == "time         1 min 1 s"


def test_what_runs_out_is_seen_and_what_is_reached_is_no_warning() -> None:
    def style(name: str, used: float) -> object:
        return limit_line(name, use(used), "").spans[1].style

    assert [style("money", used) for used in (50, 85, 99)] == ["green", "yellow", "red"]
    assert style("evaluations", 99) == "green"


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
