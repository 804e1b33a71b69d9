"""``dgm benchmark show`` of a suite with origins, and of one task of it."""

import json

import pytest
from click.testing import CliRunner

from dgm.cli.benchmark_look import show
from dgm.errors import UserError
from tests.support.named_suite import TASK, make_named_suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return str(make_named_suite(tmp_path_factory.mktemp("suite") / "mined"))


def run(*arguments):
    done = CliRunner().invoke(show, [*arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_suite_is_a_table_of_its_tasks_and_of_their_kinds(suite):
    lines = run(suite).splitlines()
    head = lines.index("search: 1 task")
    assert lines[head + 1].split() == ["task", "kind", "day", "F2P", "P2P", "lines", "module"]
    assert lines[head + 2].split() == [TASK, "history", "2026-11-27", "2", "1", "+1", "-1", "src/sums.py"]
    assert "  history     1  2026-11-27 to 2026-11-27  F2P 2  lines 2" in lines


@pytest.mark.starts_processes
def test_a_task_is_read_with_its_tests_by_name_and_its_origin(suite):
    text = run(suite, TASK)
    for said in (
        "split      search",
        "fix        src/sums.py +1 -1",
        "tests that a fix makes pass: 2\n  tests/test_sums.py::test_half\n",
        "tests that must still pass: 1\n",
        "  date     2026-11-27\n",
        "half(4) is 1",
        "workspace: 5 files",
    ):
        assert said in text
    assert "assert half(10) == 5" not in text
    assert "return number // 2" not in text


@pytest.mark.starts_processes
def test_hidden_tests_and_the_fix_are_shown_on_request(suite):
    text = run(suite, TASK, "--hidden")
    assert "--- hidden: tests/test_sums.py" in text
    assert "assert half(10) == 5" in text
    assert "+    return number // 2" in text


@pytest.mark.starts_processes
def test_the_same_as_json(suite):
    facts = json.loads(run(suite, "--json"))["facts"]
    assert [(row["task"], row["date"], row["modules"]) for row in facts] == [
        (TASK, "2026-11-27", ["src/sums.py"])
    ]
    task = json.loads(run(suite, TASK, "--json"))
    assert task["provenance"]["kind"] == "history"
    assert "hidden" not in task
    assert (
        "half(10)"
        in json.loads(run(suite, TASK, "--json", "--hidden"))["hidden"]["tests"]["tests/test_sums.py"]
    )


def test_hidden_needs_a_task(suite):
    with pytest.raises(UserError, match="say of which task"):
        run(suite, "--hidden")
