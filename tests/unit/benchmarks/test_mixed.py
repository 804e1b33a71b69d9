"""Several benchmarks as one: names of tasks, splits, versions, and who grades."""

import asyncio

import pytest

from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import open_suite, parts
from dgm.domain import Split, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade
from tests.support.suite_on_disk import TASK, NoEngine, make_suite

pytestmark = pytest.mark.slow


def make_named(folder, name):
    make_suite(folder)
    file = folder / "suite.toml"
    file.write_text(file.read_text().replace('name = "tiny"', f'name = "{name}"'))
    return folder


@pytest.fixture
def two(tmp_path):
    make_named(tmp_path / "one", "one")
    make_named(tmp_path / "two", "two")
    return f"{tmp_path}/one+{tmp_path}/two"


def test_tasks_of_all_parts_are_named_after_their_part(two):
    mixed = open_suite(two, NoEngine())
    assert mixed.name == "one+two"
    assert [task.id for task in mixed.tasks(Split.SEARCH)] == [f"one/{TASK}", f"two/{TASK}"]
    assert mixed.tasks(Split.HOLDOUT) == []
    assert mixed.task(TaskId(f"two/{TASK}")).benchmark == "two"


@pytest.mark.starts_processes
def test_each_part_grades_and_lays_out_its_own(two):
    mixed = open_suite(two, NoEngine())
    grade = asyncio.run(mixed.grade(TaskId(f"two/{TASK}"), b"", {}))
    assert (grade.verdict, grade.reason) == (Verdict.UNRESOLVED, "empty patch")
    assert "sums/__init__.py" in mixed.workspace(TaskId(f"one/{TASK}"))
    assert mixed.again(TaskId(f"one/{TASK}"), Grade(Verdict.UNRESOLVED, "", 0.0), 1) == ""


def test_version_follows_every_part(two, tmp_path):
    before = open_suite(two, NoEngine()).version
    problem = tmp_path / "two" / "tasks" / TASK / "problem.md"
    problem.write_text("# another\n")
    assert open_suite(two, NoEngine()).version != before


@pytest.mark.parametrize("task", [TASK, f"three/{TASK}", "one", ""])
def test_task_of_no_part_says_how_tasks_are_named(two, task):
    with pytest.raises(UserError, match=r"no task .* \(its tasks are named one/…, two/…\)"):
        open_suite(two, NoEngine()).task(TaskId(task))


def test_unknown_task_of_a_part_is_suggested(two):
    with pytest.raises(UserError, match="did you mean"):
        open_suite(two, NoEngine()).task(TaskId(f"one/{TASK}s"))


def test_one_benchmark_twice_is_an_error(tmp_path):
    folder = make_suite(tmp_path / "tiny")
    with pytest.raises(UserError, match="'tiny' is named twice"):
        open_suite(f"{folder}+{folder}", NoEngine())


def test_two_parts_of_one_name_are_told_apart(tmp_path):
    make_suite(tmp_path / "a")
    problem = make_suite(tmp_path / "b") / "tasks" / TASK / "problem.md"
    problem.write_text("# another\n")
    mixed = open_suite(f"{tmp_path}/a+{tmp_path}/b", NoEngine())
    assert isinstance(mixed, MixedBenchmark)
    assert list(mixed.parts) == ["tiny", "tiny-2"]


@pytest.mark.parametrize("name", ["starter+", "+starter", "starter++starter", "+"])
def test_nothing_beside_a_plus_is_an_error(name):
    with pytest.raises(UserError, match="nothing stands on one side"):
        open_suite(name, NoEngine())


def test_path_with_a_plus_stays_whole(tmp_path, monkeypatch):
    make_suite(tmp_path / "c++")
    monkeypatch.chdir(tmp_path)
    assert parts("starter+c+++polyglot:c++") == ["starter", "c++", "polyglot:c++"]
    assert open_suite("starter+c++", NoEngine()).name == "starter+tiny"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("starter+startr", "no suite 'startr'.*did you mean 'starter'"),
        ("swebnch:lite", "no kind of benchmark 'swebnch'.*did you mean 'swebench'"),
        ("polyglot", "say which, as in polyglot:FOLDER"),
    ],
)
def test_mistyped_name_is_told(name, message):
    with pytest.raises(UserError, match=message):
        open_suite(name, NoEngine())
