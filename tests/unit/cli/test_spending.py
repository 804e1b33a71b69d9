"""What a search will cost: told before it starts and after two evaluations, asked where a person wants to be asked."""

import os
import pty
import select
import sys

import pytest

from dgm.cli.main import main
from dgm.cli.spending import (
    FirstCosts,
    consent_question,
    forecast_text,
    print_prices,
    spending_question,
)
from dgm.cli.watching import TerminalWatcher
from dgm.config import resolve
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.models.auto import Offer
from dgm.models.pricing import Prices
from dgm.search.costs import EvaluationSample, compute_reach
from tests.support.runs.paid import PaidRun

MODEL, PAID = "openai-compatible/m", "openai/gpt-6.2-sol"


def settings(*assignments):
    price = f'models.prices."{MODEL}"={{input=3, output=15}}'
    return resolve(None, [f"model={MODEL}", price, *assignments], {})


def test_prices_are_told_before_the_start(capsys):
    print_prices(settings())
    said = capsys.readouterr().err
    assert said.startswith(f"price: 3 USD per million tokens in, 15 out ({MODEL}); ")
    assert "one evaluation costs at most 27.36 USD" in said
    assert said.splitlines()[1].endswith("160 evaluations alone can cost 4,377.60 USD")
    print_prices(settings("budget.usd=5"))
    assert "--max-usd" not in capsys.readouterr().err
    print_prices(resolve(None, ["model=offline"], {}))
    assert capsys.readouterr().err == ""


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


TWO = [EvaluationSample(0.03, 60.0), EvaluationSample(0.05, 100.0)]


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (
            Budget(usd=20.0),
            (
                "19.90 of 20.00 USD are left, enough for some 497 evaluations, 1 h 22 min with 8 workers "
                "(making children comes on top)"
            ),
        ),
        (
            Budget(evaluations=12),
            (
                "the remaining 10 evaluations take about 0.40 USD, 1 min 40 s with 8 workers "
                "(making children comes on top)"
            ),
        ),
        (Budget(seconds=60.0), "nothing limits their number"),
    ],
)
def test_the_forecast_by_two_tries(budget, said):
    reach = compute_reach(TWO, budget, 0.1, 2, 8)
    assert (
        forecast_text(reach, budget, 0.1, 8) == f"forecast: about 0.04 USD an evaluation by 2 tries; {said}"
    )


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
def test_a_free_model_has_no_forecast_of_costs(tmp_path):
    made = PaidRun(tmp_path / "run")
    made.evaluated(0, 0, calls=1)
    made.evaluated(0, 1, calls=1)
    FirstCosts(made.run, resolve(None, ["model=offline"], {}), pytest.fail)
    made.run.close()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--set", "budget.until_score=62"], "--set budget.until_score: 62: input should be less than 1"),
        (["--set", "budget.until_score=high"], "--set budget.until_score: 'high': input should be"),
        (["--set", "budget.patience=0"], "--set budget.patience: 0: input should be greater than"),
        (["--max-usd", "nan"], "--max-usd: nan: input should be"),
        (["--max-evaluations", "0"], "--max-evaluations: 0: input should be greater than"),
    ],
)
def test_limits_that_make_no_sense_are_refused_in_one_line(words, problem, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    with pytest.raises(SystemExit) as left:
        main(["run", *words])
    out, err = capsys.readouterr()
    assert (left.value.code, out, len(err.splitlines())) == (2, "", 1)
    assert problem in err
    assert not list(tmp_path.iterdir())


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


def test_the_question_about_a_paid_model_names_model_variable_price_and_place():
    offer = Offer("openai", PAID, "TEAM_KEY", "https://eu.example.org/v1", Prices.load().of(PAID))
    text = consent_question(offer)
    assert text.startswith(f"use {PAID} at https://eu.example.org/v1 with TEAM_KEY? it costs money: ")
    assert "2 USD per million tokens in, 10 out; about 0.035 USD per call of 10,000 tokens in" in text
    assert "\n" not in text


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
