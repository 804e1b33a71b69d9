"""``dgm agent list`` and its call."""

import json

import pytest

import dgm
from dgm.cli.main import main
from dgm.paths import SEEDS


def run(*words):
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code


def test_the_shipped_agents_are_listed_with_their_use(capsys):
    run("agent", "list", "--json")
    rows = json.loads(capsys.readouterr().out)["agents"]
    assert [row["name"] for row in rows] == list(SEEDS)
    assert {row["name"]: row["default_for"] for row in rows} == {
        "plain": "the offline model",
        "solid": "every other model",
    }
    assert list(dgm.seed_agents()) == rows


def test_the_text_says_how_to_take_another_one(capsys):
    run("agent", "list")
    out = capsys.readouterr().out
    assert out.startswith("plain ")
    assert "--seed-agent FOLDER" in out
