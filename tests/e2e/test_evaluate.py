"""``dgm evaluate`` and ``dgm export --predictions`` in bubblewrap, on a few tasks of the starter suite."""

import json
import shutil

import pytest

from dgm.paths import asset
from tests.support.hosted import begun, count, events, until
from tests.support.program import OFFLINE

pytestmark = pytest.mark.sandbox

EASY, HARD, THIRD = "ledger-shares-add-up-to-more", "lru-backup-changes-later", "settings-default-is-ignored"
TASKS = ("--split", "search", "--tasks", EASY, "--tasks", HARD)
PRICES = ("--set", "models.prices.offline={input=2.0,output=8.0}")


@pytest.fixture(scope="module")
def run(dgm):
    """The folder of a search that has only its seed."""
    words = [
        "--name",
        "evaluated",
        *OFFLINE,
        "--max-evaluations",
        1,
    ]
    dgm.json("run", *words)
    return dgm.archive / "evaluated"


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """The folder of an agent of one's own."""
    folder = tmp_path_factory.mktemp("agents") / "mine"
    shutil.copytree(asset("archive", "seeds", "plain"), folder)
    return folder


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    """A file with a right, a wrong, an empty and a useless patch."""
    folder = asset("benchmarks", "starter", "tasks")
    patches = {
        EASY: (folder / EASY / "solution.patch").read_text(),
        HARD: "not a patch\n",
        THIRD: None,
    }
    file = tmp_path_factory.mktemp("predictions") / "mine.jsonl"
    rows = [
        {"instance_id": task, "model_name_or_path": "me/1", "model_patch": patch}
        for task, patch in patches.items()
    ]
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return file


@pytest.fixture(scope="module")
def tried(dgm, run, tmp_path_factory):
    """The words that try one task once, with the folder for it, and what they print."""
    words = ["evaluate", "evaluated:0", *TASKS[:4], "--into", tmp_path_factory.mktemp("tried") / "it"]
    return words, dgm.json(*words)


def test_agents_are_evaluated_compared_and_paid_once(dgm, run, mine):
    words = ["evaluate", "evaluated:seed", mine, *TASKS, *PRICES]
    found = dgm.json(*words)
    folder = run / "evaluate-starter-search"
    assert found["folder"] == str(folder)
    assert found["missing"] == 0
    one, two = found["agents"]
    assert (one["name"], two["name"]) == ("agent 0", str(mine))
    assert one["tally"]["n"] == two["tally"]["n"] == found["comparison"]["first"]["n"] == 2
    assert sorted(one["tags"]) == ["ledger", "lru"]
    assert set(one["resolved"]) | set(one["unresolved"]) == {EASY, HARD}
    assert one["spend"]["usd"] > 0
    assert found["comparison"]["mcnemar_p"] == 1.0
    log = count(folder, "events")
    said = dgm(*words).stdout
    for task, reason in one["unresolved"].items():
        assert f"agent 0 unresolved {task}: {reason}" in said
    assert count(folder, "events") == log


def test_money_ends_it_and_more_money_goes_on(dgm, run, tmp_path):
    words = ["evaluate", "evaluated:seed", *TASKS[:4], *PRICES, "--into", tmp_path / "it"]
    stopped = dgm(*words, "--max-usd", "0.000001", code=3)
    assert "1 evaluation missing; repeat the command with more money to continue" in stopped.stderr
    assert dgm.json(*words, code=3)["missing"] == 1
    found = dgm.json(*words, "--max-usd", "1")
    assert found["missing"] == 0
    spent = found["spend"]["usd"]
    assert 0 < spent < 1
    assert "has cost" in dgm(*words, "--tasks", HARD, "--max-usd", spent / 2, code=2).stderr


@pytest.mark.sampled
def test_each_attempt_is_made_once_and_every_task_counts_once(dgm, tried):
    words, once = tried
    twice = dgm.json(*words, "--attempts", 2)
    (agent,) = twice["agents"]
    assert agent["tally"] == once["agents"][0]["tally"]
    assert agent["all_attempts"]["n"] == 2
    assert agent["any_attempt"]["n"] == 1
    (outcome,) = agent["outcomes"].values()
    assert outcome["attempts"] == 2
    starts = [
        (body["action"]["task"], body["action"].get("attempt", 0))
        for body in events(words[-1], "action_started")
    ]
    assert starts == [(EASY, 0), (EASY, 1)]


def test_a_killed_evaluation_goes_on_where_it_was(dgm, run, tmp_path):
    folder = tmp_path / "it"
    words = ["evaluate", "evaluated:seed", *TASKS, "--workers", 1, "--into", folder]
    with begun(dgm, *map(str, words)) as process:
        until(lambda: count(folder, "events where kind = 'task_graded'") >= 1, process)
    before = [body["outcome"]["task"] for body in events(folder, "task_graded")]
    found = dgm.json(*words)
    after = [body["outcome"]["task"] for body in events(folder, "task_graded")]
    assert found["missing"] == 0
    assert after[: len(before)] == before
    assert sorted(after) == sorted((EASY, HARD))
    assert "no policy decided anything" in dgm("replay", folder, code=2).stderr


@pytest.mark.sampled
def test_an_agent_without_a_run_is_evaluated_in_a_folder_of_its_own(dgm, mine):
    words = ["evaluate", mine, *OFFLINE, *TASKS[:4]]
    found = dgm.json(*words)
    folder = dgm.archive / found["folder"].rpartition("/")[2]
    assert folder.name.startswith("evaluate-")
    assert found["agents"][0]["tally"]["n"] == 1
    assert dgm.json(*words)["spend"] == found["spend"]


@pytest.mark.sampled
def test_what_was_begun_otherwise_is_not_mixed_up(dgm, run, tried):
    words, _ = tried
    refused = dgm(*words, "--set", "limits.calls=7", code=2).stderr
    assert "was begun with limits.calls 80, not 7" in refused
    assert "holds something else than an evaluation" in dgm(*words[:-1], run, code=2).stderr


def test_predictions_are_graded_reported_and_graded_once(dgm, run, predicted):
    words = ["evaluate", predicted, "--benchmark", "starter", "--set", "sandbox=bubblewrap"]
    found = dgm.json(*words)
    said = found["report"]
    assert said["resolved_ids"] == [EASY]
    assert said["unresolved_ids"] == [HARD]
    assert said["empty_patch_ids"] == [THIRD]
    assert said["error_ids"] == []
    assert (said["total_instances"], said["submitted_instances"]) == (60, 3)
    assert found["agents"][0]["name"] == "me/1"
    folder = dgm.archive / found["folder"].rpartition("/")[2]
    assert json.loads((folder / "report.json").read_text()) == said
    log = count(folder, "events")
    assert f"me/1 unresolved {HARD}: the patch does not apply" in dgm(*words).stdout
    assert count(folder, "events") == log
    narrow = dgm.json(*words, "--tasks", EASY)
    assert (narrow["report"]["submitted_ids"], narrow["left_out"]) == ([EASY], 2)
    assert "nothing that can work on a task" in dgm("evaluate", f"{folder}:0", code=2).stderr
    for flag, text in (("--split", "holdout"), ("--tasks", "nope")):
        assert f" {text}" in dgm(*words, flag, text, code=2).stderr


def test_grading_that_was_killed_goes_on(dgm, run, predicted, tmp_path):
    folder = tmp_path / "it"
    words = ["evaluate", predicted, "--benchmark", "starter", "--set", "sandbox=bubblewrap"]
    words += ["--workers", 1, "--into", folder]
    with begun(dgm, *map(str, words)) as process:
        until(lambda: count(folder, "events where kind = 'task_graded'") >= 1, process)
    assert dgm.json(*words)["missing"] == 0
    assert len(events(folder, "task_graded")) == 3


@pytest.mark.sampled
def test_exported_patches_are_graded_as_the_agents_were(dgm, run, tmp_path):
    there = run / "evaluate-starter-search-offline"
    words = ["evaluate", "evaluated:seed", *TASKS, "--model", "offline"]
    found = dgm.json(*words)["agents"][0]
    file = tmp_path / "p.json"
    out = dgm.json("export", "evaluated", "seed", file, "--evaluation", there.name)
    assert out["model_name_or_path"] == "dgm/evaluated/0+offline"
    assert out["counts"]["predictions"] == 2
    graded = dgm.json("evaluate", file, "--benchmark", "starter", "--set", "sandbox=bubblewrap")
    assert graded["agents"][0]["resolved"] == found["resolved"]
    assert dgm.json("export", "evaluated", "seed", tmp_path / "s.jsonl")["counts"]["predictions"] == 1
