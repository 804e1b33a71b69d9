"""``evaluate`` and ``replay``: wrong arguments are named before anything is made."""

import json

import pytest

import dgm
from dgm.api.evaluation_session import select_tasks
from dgm.benchmarks.opening import open_suite
from dgm.config import Settings
from dgm.domain import Split
from dgm.errors import UserError
from dgm.exports.pack import pack
from dgm.exports.scrub import LocalIdentity
from tests.support.runs.made import make_run
from tests.support.suite_on_disk import NoEngine

pytestmark = pytest.mark.starts_processes

SEARCH_TASK = "ledger-shares-add-up-to-more"


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive with two runs."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        make_run(tmp_path / "archive" / name, verdicts=["+-", "++"])
    row = {"instance_id": "a", "model_name_or_path": "me", "model_patch": ""}
    (tmp_path / "p.json").write_text(json.dumps([row]))
    return tmp_path / "archive"


@pytest.mark.parametrize(
    ("targets", "options", "argument", "problem"),
    [
        (["one:best"], {"split": "other"}, "split", "'other' is none of search, holdout, all"),
        (["one:best"], {"attempts": 0}, "attempts", "0 is not from 1 to 100"),
        (["one:best"], {"workers": 0}, "workers", "must be from 1 to"),
        (["one:best"], {"max_usd": float("nan")}, "max_usd", "must be a number above 0"),
        (
            ["one:best"],
            {"settings": {"policy.name": "hgm"}},
            "settings",
            "policy: an evaluation sets models.*",
        ),
        (["one:best"], {"settings": ["limits.call=5"]}, "limits.call", "did you mean 'limits.calls'?"),
        ([], {}, "", "name the agents to evaluate"),
        (["one"], {}, "", "one is a run; name an agent of it"),
        (["one:best", "two:0"], {}, "", "belong to one and two"),
        (["one:99"], {}, "", "no agent '99'"),
        (["oen:best"], {}, "", "did you mean 'one'?"),
        (["/nowhere"], {}, "", "neither a folder nor a git repository"),
        (["none.json"], {"benchmark": "starter"}, "", "none.json: missing"),
        (["p.json", "one:0"], {"benchmark": "starter"}, "", "graded alone"),
        (["p.json"], {}, "benchmark", "name the suite"),
        (["p.json"], {"benchmark": "starter", "model": "offline"}, "model", "does not apply"),
        (["p.json"], {"benchmark": "starter", "attempts": 2}, "attempts", "graded once"),
    ],
)
def test_a_wrong_argument_is_named(archive, targets, options, argument, problem):
    with pytest.raises(UserError) as refused:
        dgm.evaluate(*targets, **options)
    assert (refused.value.argument, problem in refused.value.problem) == (argument, True), refused.value
    assert not [*archive.rglob("evaluate*"), *archive.rglob("predictions*")]


def test_a_model_is_refused_before_an_agent_starts(archive):
    engine = {"sandbox": f"{NoEngine.__module__}:NoEngine"}
    with pytest.raises(UserError, match="gpt-99"):
        dgm.evaluate("plain", benchmark="starter", model="gpt-99", settings=engine)
    assert not [*archive.rglob("evaluate*")]


@pytest.mark.parametrize(
    ("split", "name", "argument", "problem"),
    [
        ("promotion", None, "split", "benchmark 'starter' has no promotion task"),
        ("holdout", SEARCH_TASK, "tasks", "but in the search split"),
        ("search", f"{SEARCH_TASK}s", "tasks", f"did you mean '{SEARCH_TASK}'?"),
    ],
)
def test_a_task_that_is_not_in_the_split_is_named(split, name, argument, problem):
    benchmark = open_suite("starter", NoEngine(), Settings().benchmarks, Settings().grading)
    with pytest.raises(UserError) as refused:
        select_tasks(benchmark, Split(split), [name] if name else [])
    assert (refused.value.argument, problem in refused.value.problem) == (argument, True), refused.value


def test_nothing_is_written_into_the_copy_of_a_packed_run(archive, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pack(archive / "one", tmp_path / "one.dgm", LocalIdentity.here())
    with dgm.open(tmp_path / "one.dgm") as run:
        with pytest.raises(UserError, match=r"dgm\.export\('one\.dgm', 'FOLDER/'\)"):
            dgm.evaluate(run.best)
        with pytest.raises(UserError, match="packed and can only be read"):
            run.replay("best", what="evaluations", live="offline")


@pytest.mark.parametrize(
    ("agents", "options", "argument"),
    [
        ([], {"live": "offline"}, "what"),
        ([0], {}, "what"),
        ([0, 1], {"what": "lineage"}, "what"),
        ([0], {"what": "work", "live": "offline"}, "what"),
        ([0], {"what": "evaluations", "max_usd": 1}, "max_usd"),
        ([0], {"what": "evaluations", "into": "there"}, "into"),
        ([0], {"what": "lineage", "live": "offline"}, "what"),
        ([0], {"what": "evaluations", "settings": {"policy.name": "hgm"}}, "settings"),
    ],
)
def test_arguments_of_a_replay_that_do_not_fit_are_named(archive, agents, options, argument):
    with dgm.open("one") as run, pytest.raises(UserError) as refused:
        run.replay(*agents, **options)
    assert refused.value.argument == argument, refused.value
