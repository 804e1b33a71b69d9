"""Settings: where they come from, which wins, and what is said of wrong ones."""

import pytest

from dgm.config import Settings, resolve
from dgm.errors import UserError


def test_later_sources_win(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('workers = 3\nseed = 5\n[policy]\nname = "random"\n')
    settings = resolve(file, ["seed=6", "policy.alpha=0.5"], {"workers": 4, "model": None})
    assert (settings.workers, settings.seed, settings.policy.name, settings.policy.alpha) == (
        4,
        6,
        "random",
        0.5,
    )
    assert settings.model == Settings().model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workres = 2", "small.toml: unknown setting 'workres' (did you mean 'workers'?)"),
        ("[policy]\nalhpa = 0.5", "unknown setting 'policy.alhpa' (did you mean 'policy.alpha'?)"),
        ("workers = 0", "workers = 0: input should be greater than or equal to 1"),
        ('sandbox = "none"', "sandbox = 'none'"),
        ("workers = ", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path, text, message):
    file = tmp_path / "small.toml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        resolve(file, [], {})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value).strip()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"absent\.toml: no such settings file"):
        resolve(tmp_path / "absent.toml", [], {})


@pytest.mark.parametrize("assignments", [["workers"], ["policy.name=hgm", "policy.name.x=1"], ["budget=3"]])
def test_a_wrong_assignment_is_refused(assignments):
    with pytest.raises(UserError):
        resolve(None, assignments, {})


@pytest.mark.parametrize("limit", ["usd=1", "tokens=1000", "hours=1"])
def test_a_cost_of_expansions_wants_a_budget_of_evaluations(limit):
    cost = "budget.expansion_cost=2"
    with pytest.raises(
        UserError, match=r"^--set: budget\.expansion_cost = 2: there is no budget of evaluations"
    ):
        resolve(None, [cost, f"budget.{limit}"], {})
    assert resolve(None, [cost, f"budget.{limit}", "budget.evaluations=10"], {}).budget.expansion_cost == 2


@pytest.mark.parametrize("limits", [[], ["budget.agents=5"], ["budget.evaluations=10"]])
def test_a_cost_of_expansions_is_taken_of_the_budget_that_there_is(limits):
    assert resolve(None, ["budget.expansion_cost=500", *limits], {}).budget.expansion_cost == 500


def test_plain_text_needs_no_quotes():
    assert resolve(None, ["policy.name=random"], {}).policy.name == "random"
