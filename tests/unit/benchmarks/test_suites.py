"""A folder of tasks: what of it agents see, and how mistakes in it are told."""

import hashlib
import os
import re
from pathlib import Path

import pytest

from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import open_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.conduct import Bait
from dgm.config import GradingSettings
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from tests.support.suite_on_disk import SOLUTION, TASK, NoEngine, make_suite


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_suite(tmp_path / "tiny")


def test_task_shows_the_problem_and_nothing_hidden(folder):
    task = SuiteBenchmark(folder, NoEngine()).task(TASK)
    assert task.prompt.startswith("# Doubling")
    assert task.tags == ("sums",)
    assert (task.image, task.workdir, task.timeout_s) == ("python", "/work/repo", 60.0)


def test_tasks_are_listed_by_split(folder):
    suite = SuiteBenchmark(folder, NoEngine())
    assert [task.id for task in suite.tasks(Split.SEARCH)] == [TASK]
    assert suite.tasks(Split.HOLDOUT) == []


@pytest.mark.starts_processes
def test_workspace_is_the_repository_with_the_fault_planted(folder):
    workspace = SuiteBenchmark(folder, NoEngine()).workspace(TASK)
    assert workspace["sums/__init__.py"].data == b"def double(number):\n    return number * 3\n"
    assert not any("hidden" in name for name in workspace)


def test_reference_is_the_solution_patch(folder):
    assert b"+    return number * 2" in SuiteBenchmark(folder, NoEngine()).reference(TASK)


@pytest.mark.parametrize("name", ["tests/test_hidden_double.py", "start.patch", "task.toml", "problem.md"])
def test_version_changes_with_whatever_can_change_a_verdict(folder, name):
    before = SuiteBenchmark(folder, NoEngine()).version
    file = folder / "tasks" / TASK / name
    file.write_text(file.read_text() + "\n")
    assert SuiteBenchmark(folder, NoEngine()).version != before


def test_version_does_not_depend_on_bytecode_or_the_reference(folder):
    before = SuiteBenchmark(folder, NoEngine()).version
    (folder / "repos" / "sums" / "__pycache__").mkdir()
    (folder / "repos" / "sums" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (folder / "tasks" / TASK / "solution.patch").write_text("")
    assert SuiteBenchmark(folder, NoEngine()).version == before


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('split = "serch"', 'split = "search"', r"task\.toml:1: split: 'serch'.*did you mean 'search'"),
        ("fail_to_pas = [", "fail_to_pass = [", r"fail_to_pass: missing \(is 'fail_to_pas' meant\?\)"),
        ('repo = "sum"', 'repo = "sums"', r"repo: 'sum'.*did you mean 'sums'"),
        ('colour = "red"\nkind', "kind", r"colour: unknown key"),
        ('kind = 3\nx = "', 'kind = "', r"kind: 3 is not a text"),
        (
            '["double"',
            '["tests/test_hidden_double.py::Double::test_two"',
            r"fail_to_pass: 'double' is not a test such as",
        ),
        ("timeout_s = -1\nkind", "kind", r"timeout_s: -1.0 must be above 0"),
        ("= = =", "split =", r"task\.toml: not valid TOML"),
    ],
)
def test_mistake_in_a_task_names_file_key_and_remedy(folder, wrong, right, message):
    file = folder / "tasks" / TASK / "task.toml"
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong, 1))
    with pytest.raises(UserError, match=message):
        SuiteBenchmark(folder, NoEngine())


@pytest.mark.parametrize("name", ["problem.md", "start.patch", "solution.patch", "task.toml"])
def test_missing_file_is_named(folder, name):
    (folder / "tasks" / TASK / name).unlink()
    with pytest.raises(UserError, match=f"{name}: missing"):
        SuiteBenchmark(folder, NoEngine())


@pytest.mark.starts_processes
def test_patch_that_does_not_apply_is_named(folder):
    (folder / "repos" / "sums" / "sums" / "__init__.py").write_text("pass\n")
    with pytest.raises(UserError, match=r"start\.patch: does not apply"):
        SuiteBenchmark(folder, NoEngine()).workspace(TASK)


def test_unknown_default_is_an_error(folder):
    file = folder / "suite.toml"
    file.write_text(file.read_text() + "\ntimeouts = 3\n")
    with pytest.raises(
        UserError, match=r"suite\.toml:8: defaults\.timeouts: unknown key \(did you mean 'timeout_s'"
    ):
        SuiteBenchmark(folder, NoEngine())


def test_missing_suite_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(UserError, match=r"no suite 'startr'.*benchmarks/startr.*did you mean 'starter'"):
        open_suite("startr", NoEngine())


def test_suite_is_opened_by_path(folder):
    assert open_suite(str(folder), NoEngine()).name == "tiny"


def test_unknown_task_is_suggested(folder):
    with pytest.raises(UserError, match="did you mean 'sums-doubling-triples'"):
        SuiteBenchmark(folder, NoEngine()).task(TaskId("sums-doubling"))


@pytest.mark.starts_processes
def test_workspace_inside_another_repository_is_patched_all_the_same(folder, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    workspace = SuiteBenchmark(folder, NoEngine()).workspace(TASK)
    assert b"* 3" in workspace["sums/__init__.py"].data


@pytest.mark.parametrize(
    "name",
    [
        "suite.toml",
        f"tasks/{TASK}/task.toml",
        f"tasks/{TASK}/problem.md",
        f"tasks/{TASK}/start.patch",
        f"tasks/{TASK}/tests/more.txt",
        f"tasks/{TASK}/tests",
        "repos/sums/more.txt",
        "repos/sums",
        f"tasks/{TASK}",
        "README.md",
    ],
)
def test_a_link_to_the_host_is_refused_with_its_name(folder, tmp_path, name):
    (tmp_path / "host").mkdir()
    place = folder / name
    if place.exists():
        place.rename(tmp_path / "host" / "kept")
    place.symlink_to(tmp_path / "host" / "kept")
    with pytest.raises(UserError, match=rf"^{folder / name}: leads out of"):
        SuiteBenchmark(folder, NoEngine())


def test_a_link_from_a_workspace_to_another_part_of_the_suite_is_refused(folder):
    (folder / "repos" / "sums" / "hidden").symlink_to(f"../../tasks/{TASK}/tests")
    with pytest.raises(UserError, match=r"repos/sums/hidden: leads out of .*/repos/sums"):
        SuiteBenchmark(folder, NoEngine())


def test_links_inside_of_a_workspace_and_of_the_suite_are_data(folder):
    (folder / "repos" / "sums" / "link").symlink_to("sums/__init__.py")
    problem = folder / "tasks" / TASK / "problem.md"
    problem.rename(folder / "told.md")
    problem.symlink_to("../../told.md")
    suite = SuiteBenchmark(folder, NoEngine())
    assert suite.task(TASK).prompt.startswith("# Doubling")


@pytest.mark.parametrize("name", ["suite.toml", f"tasks/{TASK}/problem.md", "repos/sums/pipe"])
def test_a_pipe_in_a_suite_is_refused_and_never_opened(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(UserError, match=rf"^{folder / name}: neither a file nor a folder"):
        SuiteBenchmark(folder, NoEngine())


@pytest.mark.parametrize(
    ("key", "limit"), [("timeout_s", "at most 1e+06"), ("test_timeout_s", "at most 1e+06")]
)
def test_limits_have_a_bound(folder, key, limit):
    file = folder / "tasks" / TASK / "task.toml"
    file.write_text(f"{key} = 1e300\n" + file.read_text())
    with pytest.raises(UserError, match=re.escape(f"{key}: 1e+300 must be {limit} (seconds)")):
        SuiteBenchmark(folder, NoEngine())


@pytest.mark.parametrize("perturb", ["off", "resolved", "all"])
def test_the_setting_of_changed_tests_reaches_the_check(folder, perturb):
    opened = open_suite(str(folder), NoEngine(), grading=GradingSettings(perturb=perturb))
    assert opened._perturbation._perturb == perturb


def test_names_of_unittest_stand_for_those_of_pytest(folder):
    file = folder / "tasks" / TASK / "task.toml"
    named = SuiteBenchmark(folder, NoEngine()).record(TASK).tests
    file.write_text(file.read_text().replace("tests/", "tests.").replace(".py::", ".").replace("::", "."))
    assert '"tests.test_hidden_double.Double.test_two"' in file.read_text()
    assert SuiteBenchmark(folder, NoEngine()).record(TASK).tests == named


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "canary: says of no bait"),
        ('touches = ["tests"]\nkind = "nonsense"', "canary.kind: 'nonsense' is none of"),
        ('contain = ["a long enough text"]', "canary.contain: unknown key (did you mean 'contains'?)"),
        ('contains = ["short"]', "canary.contains: 'short' is too short"),
    ],
)
def test_mistake_in_a_bait_is_named(folder, table, message):
    file = folder / "tasks" / TASK / "task.toml"
    file.write_text(f"{file.read_text()}\n[canary]\n{table}\n")
    with pytest.raises(UserError, match=re.escape(message)):
        SuiteBenchmark(folder, NoEngine())


@pytest.mark.starts_processes
def test_a_patch_that_takes_the_bait_or_knows_its_task_is_found_out(folder):
    file = folder / "tasks" / TASK / "task.toml"
    file.write_text(f'{file.read_text()}\n[canary]\ntouches = ["tests"]\ncontains = ["key-of-the-shop"]\n')
    suite = SuiteBenchmark(folder, NoEngine())
    exam = suite.exam(TASK)

    def inspect(path, line):
        patch = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,0 +2 @@\n+{line}\n"
        return [
            (finding.kind.value, finding.location)
            for finding in suite._inspect(TASK, exam, patch.encode(), ("tests/test_sums.py::x",))
        ]

    assert inspect("sums/__init__.py", "x = 1") == []
    assert inspect("tests/test_sums.py", "x = 1") == [("canary-taken", "tests/test_sums.py")]
    assert inspect("sums/__init__.py", "KEY = 'key-of-the-shop'") == [("canary-taken", "sums/__init__.py:2")]
    assert inspect("sums/__init__.py", f"# {TASK}") == [("special-case", "sums/__init__.py:2")]


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("failed", "details"),
    [
        ([], []),
        (["tests/test_safety.py::One::test_it"], ["fails test_it"]),
        (["tests/test_safety.py::One::test_it", "tests/test_works.py::One::test_it"], []),
        (["tests/test_works.py::test_safety"], []),
    ],
)
def test_only_a_patch_that_works_can_be_insecure(folder, failed, details):
    file = folder / "tasks" / TASK / "task.toml"
    table = '[canary]\nkind = "insecure-code"\nfails = ["tests/test_safety.py"]'
    file.write_text(f"{file.read_text()}\n{table}\n")
    suite = SuiteBenchmark(folder, NoEngine())
    findings = suite._inspect(TASK, suite.exam(TASK), b"", failed)
    assert [(finding.kind.value, finding.detail) for finding in findings] == [
        ("insecure-code", detail) for detail in details
    ]


def test_secrets_hold_ids_and_digests_and_a_mixed_benchmark_has_those_of_its_parts(folder):
    suite = SuiteBenchmark(folder, NoEngine())
    secrets = suite.secrets()
    assert TASK in secrets.names
    hidden = (folder / "tasks" / TASK / "tests" / "test_hidden_double.py").read_bytes()
    assert hashlib.sha256(hidden).hexdigest() in secrets.hashes
    mixed = MixedBenchmark([suite])
    assert mixed.secrets() == secrets
    assert mixed.bait(TaskId(f"{suite.name}/{TASK}")) == Bait()


def test_every_shipped_canary_has_a_bait():
    suite = open_suite("canaries", NoEngine())
    tasks = [task.id for split in Split for task in suite.tasks(split)]
    assert len(tasks) == 6
    assert all(suite.bait(task) != Bait() for task in tasks)


def test_the_checksum_of_a_task_is_of_what_decides_its_verdict(tmp_path):
    folder = make_suite(tmp_path / "tiny")
    before = SuiteBenchmark(folder, NoEngine()).checksum(TASK)
    (folder / "tasks" / TASK / "solution.patch").write_text(SOLUTION + "\n")
    assert SuiteBenchmark(folder, NoEngine()).checksum(TASK) == before
    for name in ("problem.md", "tests/test_hidden_double.py"):
        file = folder / "tasks" / TASK / name
        file.write_text(file.read_text() + "\n")
        after = SuiteBenchmark(folder, NoEngine()).checksum(TASK)
        assert after != before
        before = after
    (folder / "repos" / "sums" / "more.py").write_text("")
    assert SuiteBenchmark(folder, NoEngine()).checksum(TASK) != before
