"""``dgm benchmark`` and searches on suites of one's own, as a user does them."""

import shutil
from pathlib import Path

import pytest

from tests.support.program import OFFLINE

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

SUITES = Path(__file__).parent / "suites"
HANDMADE, HARBOR = SUITES / "handmade", SUITES / "harbor"


@pytest.fixture(scope="module")
def imported(dgm, tmp_path_factory):
    target = tmp_path_factory.mktemp("imported") / "little"
    dgm("benchmark", "make", target, HARBOR, "--image", "python")
    return target


def search(dgm, benchmark, name, evaluations=2):
    return dgm.json(
        "run",
        "--benchmark",
        benchmark,
        *OFFLINE,
        "--name",
        name,
        "--max-evaluations",
        evaluations,
    )


def test_verify_finds_handmade_tasks_sound(dgm):
    said = dgm.json("benchmark", "verify", HANDMADE, "--set", "sandbox=bubblewrap", "--workers", 4)
    assert (said["sound"], said["problems"], said["left_out"]) == (4, {}, [])
    assert "no literal in a Python file" in said["notes"]["total-leaves-out-the-last"][0]


def test_verify_says_what_disagrees_and_exits_1(dgm, tmp_path):
    suite = shutil.copytree(HANDMADE, tmp_path / "spoiled")
    (suite / "tasks" / "total-leaves-out-the-last" / "tests" / "test.sh").write_text("exit 0\n")
    (suite / "tasks" / "slugs-keep-their-signs" / "solution" / "solve.sh").write_text("true\n")
    done = dgm("benchmark", "verify", suite, "--set", "sandbox=bubblewrap", code=1)
    assert "total-leaves-out-the-last: doing nothing is resolved: the tests pass" in done.stdout
    assert "slugs-keep-their-signs: the reference fix is unresolved: empty patch" in done.stdout
    assert done.stdout.endswith("2 of 4 tasks sound\n")
    assert "4 of 4  2 not sound" in done.stderr


def test_verify_of_one_task_of_a_mixed_benchmark(dgm):
    name = f"starter+{HANDMADE}"
    said = dgm.json(
        "benchmark", "verify", name, "handmade/short-words-are-lost", "--set", "sandbox=bubblewrap"
    )
    assert said["verified"] == ["handmade/short-words-are-lost"]
    assert said["sound"] == 1


def test_imported_tasks_are_sound(dgm, imported):
    assert dgm.json("benchmark", "verify", imported, "--set", "sandbox=bubblewrap")["sound"] == 3


def test_mixed_suite_is_searched_stopped_and_resumed(dgm, imported):
    search(dgm, f"{HANDMADE}+{imported}", "mixed", evaluations=1)
    done = dgm.json("resume", "mixed", "--max-evaluations", 2)
    assert done["evaluations"]["graded"] == 2
    tasks = {row["task"] for row in dgm.json("show", "mixed", "0")["evaluations"]}
    assert {task.partition("/")[0] for task in tasks} <= {"handmade", "little"}


@pytest.fixture(scope="module")
def docker():
    """An engine that answers."""
    from dgm.errors import UserError
    from dgm.sandboxes.choose import choose

    try:
        choose("docker")
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.docker
def test_fetch_builds_what_is_missing_after_it_was_told_to(dgm, docker, tmp_path):
    harbor = shutil.copytree(HARBOR, tmp_path / "harbor")
    (harbor / "sum-the-sales" / "environment" / "fresh.txt").write_text(str(tmp_path))
    suite = tmp_path / "suite"
    dgm("benchmark", "make", suite, harbor)
    unasked = dgm("benchmark", "fetch", suite, "sum-the-sales", "--yes", code=2)
    assert str(suite) in unasked.stderr
    refused = dgm("benchmark", "fetch", suite, "sum-the-sales", "--trust", code=2)
    assert "suite: 1 of 1 images are to be" in refused.stderr
    assert "--yes" in refused.stderr
    done = dgm.json("benchmark", "fetch", suite, "sum-the-sales", "--yes")
    assert (len(done["ready"]), done["failed"], done["before"][0]["missing"]) == (1, {}, 1)
    again = dgm.json("benchmark", "fetch", suite, "sum-the-sales")
    assert again["before"][0] == {"benchmark": "suite", "here": 1, "missing": 0}


def test_a_suite_is_not_made_in_the_folder_that_is_imported(dgm):
    done = dgm("benchmark", "make", HARBOR / "x", HARBOR, code=2)
    assert "lies in the folder that is imported" in done.stderr
    assert not (HARBOR / "x").exists()
