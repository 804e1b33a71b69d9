"""What a search will cost: told before it starts and after two evaluations, asked where a person wants to be asked."""

import os
import pty
import select
import sys

import pytest

from dgm.cli.main import main
from dgm.cli.watching import (
    FirstCosts,
    TerminalWatcher,
    spending_question,
)
from dgm.config import resolve
from dgm.domain import Budget
from dgm.errors import UserError
from tests.support.runs.paid import PaidRun

MODEL, PAID = "openai-compatible/m", "openai/gpt-6.2-sol"


def settings(*assignments):
    price = f'models.prices."{MODEL}"={{input=3, output=15}}'
    return resolve(None, [f"model={MODEL}", price, *assignments], {})


ABOVE = "budget.confirm_above_usd=5"


@pytest.mark.parametrize(
    ("assignments", "budget", "spent", "asked"),
    [
        ([], Budget(usd=20.0), 0.0, ""),
        ([ABOVE], Budget(usd=5.0), 0.0, ""),
        ([ABOVE], Budget(usd=20.0), 15.0, ""),
        (
            [ABOVE],
            Budget(usd=20.0),
            2.0,
            "this may cost up to 18.00 USD (budget.confirm_above_usd = 5); go on?",
        ),
        ([ABOVE], Budget(evaluations=10, tokens=100_000), 0.0, ""),
        (
            [ABOVE],
            Budget(evaluations=10),
            0.0,
            (
                "no --max-usd limits the cost; 10 evaluations alone can cost 273.60 USD "
                "(budget.confirm_above_usd = 5); go on?"
            ),
        ),
        (
            [ABOVE],
            Budget(seconds=10.0),
            0.0,
            "no --max-usd limits the cost (budget.confirm_above_usd = 5); go on?",
        ),
        ([ABOVE, "model=offline"], Budget(evaluations=10), 0.0, ""),
        ([ABOVE, "model=openai/gpt-unheard-of"], Budget(evaluations=10), 0.0, ""),
    ],
)
def test_what_a_person_is_asked(assignments, budget, spent, asked):
    assert spending_question(settings(*assignments), budget, spent) == asked


def test_off_a_terminal_nobody_is_asked(capsys):
    TerminalWatcher().confirm(settings(ABOVE), Budget(usd=20.0), 0.0)
    assert "go on?" not in capsys.readouterr().err


@pytest.mark.starts_processes
def test_the_costs_are_told_once_after_two_graded_evaluations(tmp_path):
    made = PaidRun(tmp_path / "run")
    told = []
    costs = FirstCosts(made.run, settings(), told.append)

    def hear():
        costs.event(list(made.run.store.read())[-1])

    made.evaluated(0, 0, calls=3)
    hear()
    # What is still under way costs, and is not part of an evaluation that was graded.
    made.child(0, calls=9)
    hear()
    assert told == []
    made.evaluated(0, 1, calls=5)
    hear()
    assert len(told) == 1
    assert told[0].startswith("forecast: about 0.04 USD an evaluation by 2 tries; 0.33 of 0.50 USD are left")
    made.evaluated(1, 0, calls=1)
    hear()
    assert len(told) == 1
    # A later session knows them from the beginning.
    FirstCosts(made.run, settings(), told.append)
    assert told[1].startswith("forecast: about 0.03 USD an evaluation by 3 tries; ")
    made.run.close()


@pytest.mark.starts_processes
def test_status_is_repeated_block_by_block_off_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    made = PaidRun(tmp_path / "run")
    made.run.close()
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as left:
            main(["status", "run", "--watch", *more])
        assert left.value.code == 0
        out = capsys.readouterr().out
        assert out.startswith("{") and out.count("\n") == 1 if more else "last event" in out


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_the_cost_is_asked_for_once_on_a_terminal(answer, monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as stdin, os.fdopen(os.dup(theirs), "w") as stderr:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        os.write(ours, f"{answer}\n".encode())
        if answer == "y":
            TerminalWatcher().confirm(settings(ABOVE), Budget(usd=20.0), 0.0)
        else:
            with pytest.raises(UserError, match="nothing was spent"):
                TerminalWatcher().confirm(settings(ABOVE), Budget(usd=20.0), 0.0)
        TerminalWatcher(yes=True).confirm(settings(ABOVE), Budget(usd=20.0), 0.0)
        shown = ""
        while "go on? [y/N]" not in shown:
            assert select.select([ours], [], [], 20)[0], shown
            shown += os.read(ours, 10_000).decode()
    os.close(ours)
