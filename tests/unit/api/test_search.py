"""The front door: what it imports, what it says, and how what it is given becomes settings."""

import asyncio
import math
import subprocess
import sys

import pytest

import dgm
from dgm import plugins
from dgm.api.arguments import Budget, model_of, split_engine
from dgm.api.search import Evolution, change_budget
from dgm.config import resolve
from dgm.domain import Budget as RunBudget
from dgm.errors import Infrastructure, UserError
from dgm.plugins import make_plugin
from dgm.policies.registry import PolicyContext
from tests.support.suite_on_disk import NoEngine


class Plain:
    """A policy that never has anything to do."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def decide(self, view, rng):
        self.asked.append(1)


class Particular(Plain):
    """One that cannot be made anew."""

    def __init__(self, number, other) -> None:
        super().__init__()


class CountingEngine(NoEngine):
    """An engine that counts what is asked of it, and opens nothing."""

    name = "counting"
    opened = 0

    def open(self, spec):
        CountingEngine.opened += 1
        raise Infrastructure("no sandbox here")


@pytest.mark.starts_processes
def test_the_package_imports_nothing_of_itself():
    code = "import sys, dgm; print([name for name in sys.modules if name.startswith('dgm.')], 'typing' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 0:  # -S: where the package is found without site-packages
        assert done.stdout.split("]")[0] == "["
    assert {"evolve", "evolve_batch", "open", "Budget"} <= set(dir(dgm))


def test_a_budget_is_its_settings():
    assert dgm.Budget(usd=2, hours=8).settings() == {"budget.usd": 2, "budget.hours": 8}


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"budget": dgm.Budget(agents=-1)}, r"budget\.agents: -1"),
        ({"sandbox": "vm"}, "sandbox"),
        ({"max_usd": -3}, r"max_usd: -3: input should be greater than 0"),
        ({"settings": {"limits.cals": 3}}, r"limits\.cals: unknown setting 'limits\.cals'"),
        ({"file": "settings.toml"}, r"settings\.toml: no such settings file"),
        ({"name": "no/name"}, r"^name: 'no/name': a run's name is made of"),
        ({"policy": "lineag", "settings": {"sandbox": "bubblewrap"}}, "did you mean 'lineage'"),
    ],
)
def test_what_is_wrong_is_said_in_python_before_anything_is_made(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DGM_ARCHIVE", raising=False)
    with pytest.raises(UserError, match=said):
        dgm.evolve(**words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("model", "opens"), [("gpt-99", False), ("openai/gpt-5.1", False), ("offline", True)]
)
def test_models_and_their_keys_are_checked_before_a_sandbox_opens(model, opens, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(CountingEngine, "opened", 0)
    with pytest.raises(Infrastructure if opens else UserError):
        dgm.evolve(model=model, sandbox=f"{__name__}:CountingEngine")
    assert (CountingEngine.opened > 0) is opens
    assert list(tmp_path.iterdir()) == []


def test_a_loop_that_runs_already_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def in_a_notebook() -> None:
        dgm.evolve(max_usd=-3)

    with pytest.raises(UserError, match="greater than 0"):
        asyncio.run(in_a_notebook())


def test_dotted_names_and_tables_meet():
    limits = resolve(None, {"limits.calls": 3, "limits": {"tries": 2}}, {}).limits
    assert (limits.calls, limits.tries) == (3, 2)


def test_arguments_win_over_a_file_whose_paths_begin_at_it(tmp_path):
    (tmp_path / "mine.toml").write_text('workers = 4\nseed_agent = "mine"\n[policy]\nname = "hgm"\n')
    found = resolve(tmp_path / "mine.toml", {"workers": 3}, {"workers": 2})
    assert (found.workers, found.policy.name, found.seed_agent) == (2, "hgm", str(tmp_path / "mine"))


def test_given_limits_replace_their_own():
    before = RunBudget(evaluations=10, usd=2.0)
    given = {"usd": 4, "hours": 2, "until_score": 0.5}
    assert change_budget(before, given) == RunBudget(evaluations=10, usd=4, seconds=7200, score=0.5)
    with pytest.raises(UserError, match="it cannot be changed"):
        change_budget(before, {"expansion_cost": 1})


def test_an_object_is_made_anew_for_each_that_asks():
    given = Plain()
    reference = plugins.lend_object("policies", given)
    assert reference == f"{__name__}:Plain{{'asked': []}}"
    found = plugins.find_object("policies", reference)
    one, other = (plugins.make_object(found, PolicyContext()) for _ in range(2))
    assert isinstance(one, Plain)
    assert one is not other is not given


def test_what_cannot_be_found_again_says_so():
    for reference, said in (
        ("__main__:Mine", "cannot be imported again"),
        ("no_such_module:Mine", "put its folder on PYTHONPATH"),
        ("os:abort", "is a function"),
        (f"{__name__}:Missing", r"no attribute .Missing.\)$"),
    ):
        with pytest.raises(UserError, match=said):
            plugins.find_object("operators", reference)
    place = r"test_search:Particular, one of the policies, .*test_search\.py:\d+: arguments 'number', 'other' are no"
    with pytest.raises(UserError, match=place):
        make_plugin("policies", f"{__name__}:Particular", PolicyContext())


def test_replies_are_a_model_of_a_program():
    named = model_of(["DONE"])
    assert named and named.startswith("scripted:")
    assert model_of(lambda _messages, _tools: "DONE") != named
    assert (model_of("offline"), model_of(None)) == ("offline", None)


@pytest.mark.parametrize(
    "settings",
    [
        {"engine": ["ssh://a", "ssh://b"], "workers": 1},
        ["engine=ssh://a", "workers=1", 'engine="ssh://b"'],
    ],
)
def test_engines_are_no_setting_that_a_run_records(settings):
    others, engines = split_engine(settings)
    assert list(engines) == ["ssh://a", "ssh://b"]
    assert resolve(None, others, {}).workers == 1
    assert split_engine(None) == ({}, ())


@pytest.mark.parametrize("limit", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("name", ["usd", "hours", "until_score", "evaluations"])
def test_a_limit_that_is_none_is_refused_before_the_run_is_opened(name, limit):
    with pytest.raises(UserError, match="input should be"):
        Evolution.resume(None, budget=Budget(**{name: limit}))
