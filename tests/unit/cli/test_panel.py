"""The live panel: a bar for every limit, a number where there is none."""

from pathlib import Path

import pytest

from dgm.analysis.budget_use import BudgetUse
from dgm.archive.events import ChildProposed, RunStarted
from dgm.cli.panel import limit_line, panel_lines, time_line
from dgm.cli.progress import show_progress
from dgm.domain import SEED, Born, Budget, TaskId
from dgm.show.spans import Tone, plain_text
from tests.support.runs.packable import begin, child, evaluate

pytestmark = pytest.mark.slow


def test_every_limit_has_a_bar(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        run.append(RunStarted(Budget(4, 8, 2.0, 60, 100.0), (TaskId("a"),)))
        evaluate(run, "it")
        shown = [plain_text(each) for each in panel_lines(run.tree, {}, None)]
    assert shown[:4] == [
        "evaluations  █████░░░░░░░░░░░░░░░ 1 of 4 25%",
        "agents       ██░░░░░░░░░░░░░░░░░░ 1 of 8 12%; stillborn 0, invalid 0",
        "money        ░░░░░░░░░░░░░░░░░░░░ 0.0000 of 2.00 USD 0%",
        "tokens       █████░░░░░░░░░░░░░░░ 15 of 60 25% in 3 calls",
    ]
    assert (
        plain_text(time_line(50.0, 100.0, ", more"))
        == "time         ██████████░░░░░░░░░░ 0:50 of 1:40 50%, more"
    )


def test_what_has_no_limit_is_a_number(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        run.append(RunStarted(Budget(), (TaskId("a"),)))
        child(run)
        shown = [plain_text(each) for each in panel_lines(run.tree, {}, None)]
    assert shown[:2] == ["evaluations  0", "agents       2; stillborn 0, invalid 0"]
    assert not any("█" in each or "░" in each for each in shown)
    assert plain_text(time_line(61.0, None, "")) == "time         1:01"


def test_what_runs_out_is_seen_and_what_is_reached_is_no_warning() -> None:
    def tone(name: str, used: float) -> Tone:
        return limit_line(name, BudgetUse(name, used, 100.0), "")[1].tone

    assert [tone("usd", used) for used in (50, 85, 99)] == [Tone.GOOD, Tone.WARN, Tone.BAD]
    assert tone("evaluations", 99) is Tone.GOOD


def test_how_to_answer_for_children_is_told_once(tmp_path: Path, capsys) -> None:
    with begin(tmp_path / "run") as run, show_progress(run, quiet=False) as shown:
        for commit in ("c" * 40, "d" * 40):
            action = run.tree.next_action + len(run.tree.waiting)
            shown.event(run.append(ChildProposed(action, Born((SEED,), "op", commit, "longer"))))
    out = capsys.readouterr().out
    assert out.count("waits for you: longer") == 2
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
    assert "seed 12/20 · best (37) 3/20 · about 0 s left" in lines[1]
