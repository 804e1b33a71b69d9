"""A suite keeps how often an agent solved its tasks, until a task is changed."""

import json

import pytest

from dgm.benchmarks.calibration import FILE, Calibration, task_digest, write_calibration
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import list_facts
from dgm.domain import Split
from dgm.errors import UserError
from dgm.sessions.suite_editing import filter_suite
from dgm.show.suite_rows import calibration_rows, task_rows
from tests.support.named_suite import make_named_suite
from tests.support.suite_on_disk import TASK, NoEngine, make_suite


@pytest.fixture
def suite(tmp_path):
    return make_suite(tmp_path / "tiny")


def opened(folder):
    return SuiteBenchmark(folder, NoEngine())


def tried(folder, resolved=1, task=TASK):
    digest = task_digest(folder, opened(folder).record(TASK))
    return Calibration(str(task), digest, "plain 2c9ac1c3", "offline", 2, resolved)


@pytest.mark.parametrize(("resolved", "outcome"), [(0, "never"), (1, "sometimes"), (2, "always")])
def test_outcome_follows_from_the_attempts(suite, resolved, outcome):
    write_calibration(suite, [tried(suite, resolved)])
    (facts,) = list_facts(opened(suite))
    assert (facts.calibrated, facts.record()["calibrated"]) == (outcome, outcome)


def test_calibration_changes_no_version(suite):
    before = opened(suite).version
    write_calibration(suite, [tried(suite)])
    assert opened(suite).version == before


def test_calibration_of_a_changed_task_counts_no_more_and_of_another_split_it_does(suite):
    write_calibration(suite, [tried(suite)])
    file = suite / "tasks" / TASK / "task.toml"
    file.write_text(file.read_text().replace('split = "search"', 'split = "holdout"'))
    assert opened(suite).calibrations()[TASK].resolved == 1
    (suite / "repos" / "sums" / "sums" / "__init__.py").write_text(
        "def double(number):\n    return number * 2\n\n"
    )
    assert opened(suite).calibrations() == {}


def test_rows_of_other_tasks_stay_and_a_repeated_one_is_replaced(suite):
    write_calibration(suite, [tried(suite), tried(suite, task="a-task-that-was-dropped")])
    write_calibration(suite, [tried(suite, 2)])
    rows = [json.loads(line) for line in (suite / FILE).read_text().splitlines()]
    assert [(row["task"], row["resolved"]) for row in rows] == [("a-task-that-was-dropped", 1), (TASK, 2)]
    assert list(opened(suite).calibrations()) == [TASK]


@pytest.mark.parametrize(
    "line",
    ["[]", "{}", "nothing", '{"task": 1}', json.dumps({"task": "a", "digest": "", "agent": "", "model": "",
     "attempts": 1, "resolved": 2})],
)  # fmt: skip
def test_damaged_file_is_named(suite, line):
    (suite / FILE).write_text(f"{line}\n")
    with pytest.raises(UserError, match=r"calibration\.jsonl: not what dgm wrote .*; remove it"):
        opened(suite).calibrations()


@pytest.mark.starts_processes
@pytest.mark.parametrize("make", [make_suite, make_named_suite])
def test_a_suite_made_of_a_calibrated_one_keeps_it(make, tmp_path):
    folder = make(tmp_path / "some")
    (task,) = opened(folder).tasks(Split.SEARCH)
    row = Calibration(task.id, task_digest(folder, opened(folder).record(task.id)), "plain", "offline", 2, 1)
    write_calibration(folder, [row])
    _, some = filter_suite(str(folder), ["calibrated=sometimes"], tmp_path / "filtered")
    assert some.calibrations() == {task.id: row}


def test_rows_tell_who_solved_what(suite):
    write_calibration(suite, [tried(suite)])
    facts = list_facts(opened(suite))
    assert [row.split() for row in task_rows(facts)][1][-2:] == ["1/2", "sums/__init__.py"]
    assert list(calibration_rows(facts)) == ["plain 2c9ac1c3 with offline: always 0, sometimes 1, never 0"]
