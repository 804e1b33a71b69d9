"""Suites made of two small ones: one with pytest tests on commits, one with a library."""

import shutil

import pytest

from dgm.benchmarks.suite_editing import SplitBy, set_keys
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from dgm.sessions.suite_editing import filter_suite, merge_suites, split_suite
from tests.support.named_suite import TASK as MINED
from tests.support.named_suite import make_named_suite
from tests.support.suite_on_disk import TASK as TINY
from tests.support.suite_on_disk import NoEngine, make_suite


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suites")
    mined = make_named_suite(folder / "mined")
    (mined / "LICENSE").write_text("as you like\n")
    (mined / "mined.jsonl").write_text("{}\n")
    return mined, make_suite(folder / "tiny")


def opened(folder):
    return SuiteBenchmark(folder, NoEngine())


@pytest.mark.starts_processes
def test_merged_tasks_are_what_they_were(suites, tmp_path):
    done, both = merge_suites([str(suite) for suite in suites], tmp_path / "both")
    assert done.tasks == [MINED, TINY]
    assert (both.name, both.license) == ("both", "MIT AND Apache-2.0")
    for suite, task in zip(map(opened, suites), (MINED, TINY), strict=True):
        assert both.workspace(task) == suite.workspace(task)
        assert both.hidden_tests(task) == suite.hidden_tests(task)
        assert both.reference(task) == suite.reference(task)
        assert both.record(task) == suite.record(task)
    assert (tmp_path / "both" / "LICENSE.mined").read_text() == "as you like\n"
    assert not (tmp_path / "both" / "mined.jsonl").exists()


@pytest.mark.starts_processes
def test_a_task_that_both_have_is_taken_once_and_another_one_of_its_name_is_renamed(suites, tmp_path):
    other = shutil.copytree(suites[1], tmp_path / "other")
    done, both = merge_suites([str(suites[1]), str(other)], tmp_path / "same")
    assert (done.tasks, done.repeated) == ([TINY], [f"tiny/{TINY}"])
    (other / "tasks" / TINY / "problem.md").write_text("something else\n")
    (other / "repos" / "sums" / "NEWS").write_text("a library of its own\n")
    (other / "suite.toml").write_text((other / "suite.toml").read_text().replace('"tiny"', '"other"'))
    done, both = merge_suites([str(suites[1]), str(other)], tmp_path / "both")
    assert done.renamed == {f"other/{TINY}": f"other-{TINY}"}
    assert "NEWS" in both.workspace(TaskId(f"other-{TINY}"))
    assert "NEWS" not in both.workspace(TINY)
    assert both.record(TaskId(f"other-{TINY}")).repo == "sums-2"


@pytest.mark.starts_processes
def test_a_filtered_suite_keeps_its_notes_and_only_what_it_needs(suites, tmp_path):
    merge_suites([str(suite) for suite in suites], tmp_path / "both")
    _, some = filter_suite(str(tmp_path / "both"), ["kind=boundary"], tmp_path / "some")
    assert [task.id for task in some.tasks(Split.SEARCH)] == [TINY]
    assert sorted(each.name for each in (tmp_path / "some").iterdir()) == [
        "LICENSE.mined", "repos", "suite.toml", "tasks",
    ]  # fmt: skip
    assert "kind=boundary" in some.description
    with pytest.raises(UserError, match="none of 2 tasks has kind=none"):
        filter_suite(str(tmp_path / "both"), ["kind=none"], tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.starts_processes
def test_a_split_changes_the_suite_or_a_copy_of_it(suites, tmp_path):
    folder = tmp_path / "both"
    _, both = merge_suites([str(suite) for suite in suites], folder)
    copy = split_suite(str(folder), {Split.HOLDOUT: 0.5}, SplitBy.RANDOM, 0, tmp_path / "copy")
    assert len(copy.tasks(Split.HOLDOUT)) == 1
    assert opened(folder).version == both.version
    changed = split_suite(str(folder), {Split.HOLDOUT: 0.5}, SplitBy.RANDOM, 0)
    assert changed.version == opened(folder).version != both.version
    assert [changed.record(task) for task in (MINED, TINY)] == [copy.record(task) for task in (MINED, TINY)]


@pytest.mark.parametrize("names", [["starter"], ["starter", "starter"], ["starter", "nothing-here"]])
def test_what_cannot_be_merged_is_refused(names, tmp_path):
    with pytest.raises(UserError, match=r"two suites or more|named twice|no suite's folder"):
        merge_suites(names, tmp_path / "out")


def test_a_target_in_use_and_a_suite_of_dgm_stay_as_they_are(suites, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(UserError, match="is there already"):
        filter_suite(str(suites[1]), ["f2p>0"], tmp_path / "used")
    with pytest.raises(UserError, match="lies in the folder of a suite"):
        filter_suite(str(suites[1]), ["f2p>0"], suites[1] / "inner")
    with pytest.raises(UserError, match=r"used/file/out: cannot be written: .*; give another folder"):
        filter_suite(str(suites[1]), ["f2p>0"], tmp_path / "used" / "file" / "out")
    with pytest.raises(UserError, match="dgm's own suite"):
        split_suite("starter", {Split.HOLDOUT: 0.5}, SplitBy.RANDOM, 0)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            'a = 1\nsplit = "search"  # why\n[t]\nsplit = 2\n',
            'a = 1\nsplit = "holdout"  # why\n[t]\nsplit = 2\n',
        ),
        ("a = 1\r\n\r\n[t]\nsplit = 2\n", 'a = 1\r\nsplit = "holdout"\n\r\n[t]\nsplit = 2\n'),
        ('l = [\n    "x",\n]\n"split" = 1\n', 'l = [\n    "x",\n]\n"split" = "holdout"\n'),
        ('split = """\nsearch"""\n', 'split = "holdout"\n'),
    ],
)
def test_one_key_changes_and_all_other_text_stays(tmp_path, text, changed):
    file = tmp_path / "task.toml"
    file.write_bytes(text.encode())
    set_keys(file, {"split": "holdout"})
    assert file.read_bytes().decode() == changed


def test_a_file_that_holds_the_value_is_not_written(tmp_path):
    file = tmp_path / "task.toml"
    file.write_text('split = "holdout"\n')
    file.chmod(0o400)
    before = file.stat().st_mtime_ns
    set_keys(file, {"split": "holdout"})
    assert file.stat().st_mtime_ns == before
