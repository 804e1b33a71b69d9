"""A suite mined out of a small repository: what is in it, what cheats are graded on it, and mining that is killed."""

import json
import subprocess
import sys
import time

import pytest

from tests.support.index_server import IndexServer
from tests.support.small_history import PYTEST, SETUP, make_history

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.minutes,
]
KILLS = (1, 2, 3, 5, 6)
"""Lines of the journal after which the program is killed."""


@pytest.fixture(scope="module", autouse=True)
def _index():
    """All that the user's command finds packages in is pytest as it is installed here."""
    with IndexServer().serving() as index, pytest.MonkeyPatch.context() as patch:
        index.add_installed(*PYTEST)
        patch.setenv("PIP_INDEX_URL", index.url)
        yield


def command(repo, out):
    options = [
        "--out",
        str(out),
        "--setup",
        SETUP,
        "--bugs",
        "0",
        "--set",
        "mining.holdout=0.5",
        "--set",
        "sandbox=bubblewrap",
        "--json",
    ]
    return [sys.executable, "-m", "dgm", "benchmark", "mine", str(repo), *options]


def mine(repo, out):
    return json.loads(subprocess.run(command(repo, out), check=True, capture_output=True, timeout=900).stdout)


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mined")
    repo = make_history(folder / "repo")
    return repo, folder / "suite", mine(repo, folder / "suite")


def test_both_changes_with_tests_are_tasks(mined):
    _, folder, report = mined
    assert (report["tasks"], report["splits"]) == ({"history": 2}, {"holdout": 1, "search": 1})
    lines = [json.loads(line) for line in (folder / "mined.jsonl").read_text().splitlines()]
    assert [line.get("reason", "a task") for line in lines] == [
        "the code changes in comments, docstrings or annotations only",
        "a task",
        "changes no test",
        "changes neither code nor tests",
        "a version of the project",
        "a task",
        "the first commit",
    ]
    assert (folder / "LICENSE").read_text().startswith("Permission")


def test_killed_five_times_the_suite_is_the_same_byte_for_byte(mined, tmp_path):
    repo, whole, _ = mined
    for lines in KILLS:
        with subprocess.Popen(command(repo, tmp_path / "suite"), stdout=subprocess.DEVNULL) as process:
            journal = tmp_path / "suite.mining" / "journal.jsonl"
            while process.poll() is None and not (
                journal.exists() and journal.read_bytes().count(b"\n") > lines
            ):
                time.sleep(0.01)
            assert process.poll() is None, "the mining ended before it was killed"
            process.kill()
    assert not (tmp_path / "suite").exists()
    mine(repo, tmp_path / "suite")
    assert contents(tmp_path / "suite") == contents(whole)
