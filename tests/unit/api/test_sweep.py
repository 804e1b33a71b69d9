"""``dgm.plan_sweep`` and ``dgm.sweep``: what a file asks for, and what is wrong with it."""

import pytest

import dgm
from dgm.errors import UserError
from tests.support.runs.made import make_run

FILE = """
[sweep]
seeds = [5]
[base]
model = "offline"
sandbox = "bubblewrap"
budget.evaluations = 1
[grid]
"policy.name" = ["random", "hgm"]
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of a sweep of two runs."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pair.toml").write_text(FILE)
    return tmp_path / "pair.toml"


def test_a_plan_names_runs_and_commands(file, tmp_path):
    planned = list(dgm.plan_sweep(file))
    assert [(row["run"], row["stage"]) for row in planned] == [
        ("pair-random-5", "to come"),
        ("pair-hgm-5", "to come"),
    ]
    assert planned[0]["command"][:4] == ["dgm", "run", "--name", "pair-random-5"]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.starts_processes
def test_what_is_wrong_is_said_before_anything_starts(file, tmp_path):
    with pytest.raises(UserError, match="at_once 0: must be from 1 to 256"):
        dgm.sweep(file, at_once=0)
    make_run(tmp_path / "pair-hgm-5")
    with pytest.raises(UserError, match="but run pair-hgm-5 was begun with"):
        dgm.sweep(file)
    with pytest.raises(UserError, match="but run pair-hgm-5 was begun with"):
        dgm.plan_sweep(file)
    assert not (tmp_path / "pair").exists()
