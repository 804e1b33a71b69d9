"""``harbor:FOLDER``: tasks in Harbor's layout, imported once for each content."""

import shutil
from pathlib import Path

import pytest

from dgm.benchmarks.harbor_folder import import_folder
from dgm.benchmarks.opening import absolute, open_suite
from dgm.config import BenchmarksSettings, HarborSettings
from dgm.domain import TaskId
from dgm.errors import UserError
from tests.support.suite_on_disk import NoEngine

HARBOR = Path(__file__).parents[2] / "e2e" / "suites" / "harbor"
LIMIT = "limit-itself-is-left-out"
ON_PYTHON = BenchmarksSettings(harbor=HarborSettings(image="python"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dgm" / "harbor"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(HARBOR, tmp_path / "data set")


def open_tasks(folder, settings=ON_PYTHON):
    return open_suite(f"harbor:{folder}", NoEngine(), settings)


def test_tasks_open_as_a_benchmark(folder):
    suite = open_tasks(folder)
    assert (suite.name, suite.task(TaskId(LIMIT)).workdir) == ("data-set", "/work/app")
    assert list(suite.workspace(TaskId(LIMIT))) == ["limits.py"]


def test_same_content_is_imported_once(folder, cache, caplog):
    first = open_tasks(folder)
    (imported,) = cache.iterdir()
    (imported / "mark").touch()
    assert "not carried over" in caplog.text
    caplog.clear()
    assert open_tasks(folder).version == first.version
    assert [path.name for path in cache.iterdir()] == [imported.name]
    assert (imported / "mark").exists()
    assert not caplog.records


@pytest.mark.parametrize("change", ["tests/test.sh", "instruction.md", "image", "task"])
def test_another_content_is_another_benchmark(folder, cache, change):
    before, settings = open_tasks(folder).version, ON_PYTHON
    if change == "image":
        settings = BenchmarksSettings()
    elif change == "task":
        (folder / LIMIT).rename(folder / "another")
    else:
        with (folder / LIMIT / change).open("a") as file:
            file.write("\n# changed\n")
    assert import_folder(folder, settings.harbor.image).is_dir()
    assert len(list(cache.iterdir())) == 2
    assert change == "image" or open_tasks(folder).version != before


def test_task_that_leads_out_of_its_folder_is_left_out(folder, caplog):
    (folder / LIMIT / "tests" / "out").symlink_to("/etc/passwd")
    tasks = {path.name for path in (import_folder(folder, "python") / "tasks").iterdir()}
    assert tasks == {"greet-politely", "sum-the-sales"}
    assert f"task {LIMIT} is left out" in caplog.text


def test_failed_import_leaves_nothing_in_the_cache(folder, cache):
    for task in folder.iterdir():
        (task / "instruction.md").unlink()
    with pytest.raises(UserError, match="none of 3 tasks"):
        open_tasks(folder)
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("name", "words"),
    [("harbor:", "name the folder"), ("harbor:/none", "no such folder"), ("harbor", "say which")],
)
def test_wrong_names_are_one_line(name, words):
    with pytest.raises(UserError, match=words):
        open_suite(name, NoEngine(), ON_PYTHON)


def test_name_becomes_absolute(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert absolute("harbor:data set") == f"harbor:{folder}"
