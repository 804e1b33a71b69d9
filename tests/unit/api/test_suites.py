"""``dgm.suites`` and ``dgm.suite``: what there is, a suite, a task as an agent sees it."""

import json

import pytest

import dgm
from dgm.errors import UserError
from tests.support.suite_on_disk import TASK, make_suite


def test_shipped_suites_are_rows():
    rows = {row["name"]: row for row in dgm.suites()}
    assert rows["starter"]["tasks"]["search"] > 10


@pytest.mark.starts_processes
def test_a_suite_is_looked_at_without_a_sandbox(tmp_path):
    suite = dgm.suite(make_suite(tmp_path / "tiny"))
    assert [task.id for task in suite.tasks()] == [task.id for task in suite.tasks("search")] == [TASK]
    assert suite.tasks("holdout") == []
    with pytest.raises(UserError, match="there are search, promotion, holdout"):
        suite.tasks("none")
    task = suite.task(TASK)
    assert "sums/__init__.py" in task["workspace"] and "half as much" in task["prompt"]
    assert "hidden" not in json.dumps(task)
    assert suite.record()["ids"]["search"] == [TASK]
    with pytest.raises(UserError, match="workers 0"):
        suite.verify(workers=0)
    with pytest.raises(UserError, match="unknown setting"):
        dgm.suite("starter", {"benchmarks.swebensh.subset": "x"})


def test_a_task_has_its_origin_and_hides_its_tests_unless_asked(tmp_path):
    suite = dgm.suite(make_suite(tmp_path / "tiny"))
    origin = suite.origin(TASK)
    assert origin["tests"]["fail_to_pass"][0] == "tests/test_hidden_double.py::Double::test_two"
    assert (origin["split"], origin["kind"], origin["changes"]) == (
        "search",
        "boundary",
        {"sums/__init__.py": [1, 1]},
    )
    assert "secret-hint" not in json.dumps(origin)
    hidden = suite.origin(TASK, hidden=True)["hidden"]
    assert "secret-hint" in hidden["tests"]["tests/test_hidden_double.py"]
    assert "+    return number * 2" in hidden["solution"]
    assert [(row["task"], row["fail_to_pass"], row["added"]) for row in suite.facts()] == [(TASK, 2, 1)]
