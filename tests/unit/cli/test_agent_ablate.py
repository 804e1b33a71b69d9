"""What an ablation takes is told, and asked where nothing bounds it."""

import re
from pathlib import Path

import pytest

from dgm.api.evaluating import EvaluationChoice, EvaluationRequest
from dgm.cli.agent_ablate import _confirm, _rows
from dgm.config import Settings
from dgm.errors import UserError
from dgm.evaluation.ablation import Effect, PartEffect
from dgm.models.pricing import Price, TokenRates
from dgm.sessions.ablation import Ablation, AblationPlan

PRICE = Price(TokenRates(2.0, 2.0, 2.0, 8.0))


def plan(*, tasks=12, price=PRICE, usd_limit=None, missing=36):
    request = EvaluationRequest([], Path(), "", "", Settings(), EvaluationChoice())
    return AblationPlan(
        request=request,
        parts=["a", "b"],
        turns={"": 10_000, "a": 9_000, "b": 8_000, "c": None},
        known_turns={},
        folder=Path(),
        tasks=tasks,
        evaluations=36,
        missing=missing,
        price=price,
        usd_limit=usd_limit,
    )


def test_money_without_a_limit_is_refused_where_nobody_can_be_asked():
    with pytest.raises(
        UserError, match=r"0\.02.* USD for the input of a first turn.*set --max-usd, or add --yes"
    ):
        _confirm(plan(), yes=False)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, ["3 agents × 12 tasks × 1 attempt = 36 evaluations", "0.02"]),
        ({"usd_limit": 5.0}, ["5.00 USD"]),
        ({"tasks": 6}, ["if 7 tasks or more change", "too few"]),
    ],
)
def test_what_it_takes_is_told_first(how, words, capsys):
    _confirm(plan(**how), yes="usd_limit" not in how)
    shown = capsys.readouterr().err
    assert [word for word in words if word not in shown] == []


def test_a_free_model_or_nothing_to_do_needs_no_consent(capsys):
    _confirm(plan(price=None), yes=False)
    assert "price" not in capsys.readouterr().err
    _confirm(plan(missing=0), yes=False)
    assert capsys.readouterr().err == ""


def test_every_part_has_a_row():
    effects = [
        PartEffect("CLAUDE.md#Tone", 12, Effect.HURTS, 20, 20, 5, 15, -0.5, (-0.7, -0.2), 0.0123),
        PartEffect("run.md", 0, Effect.NEEDED),
    ]
    heads, tone, needed, *_ = (re.split(r"  +", line) for line in _rows(Ablation(None, effects)))
    assert tone == ["CLAUDE.md#Tone", "5/20", "15/20", "-50 (-70 to -20)", "0.012", "12", "hurts"]
    assert needed == ["run.md", *["–"] * 5, "needed to start"]
    assert len(heads) == len(tone)
