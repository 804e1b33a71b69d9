"""A suite as a data set: what agents see of each task, exactly, and nothing of what decides."""

import base64
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from dgm.api.exporting import export
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from dgm.exports.suite_dataset import write_suite
from dgm.paths import asset
from tests.support.runs.packable import ALICE

pytestmark = pytest.mark.starts_processes


@pytest.fixture(scope="module")
def starter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite") / "starter-data"
    assert export("starter", f"hf:{folder}").counts == {"search": 40, "holdout": 20}
    return folder


def test_every_task_has_its_problem_and_its_files(starter):
    suite = open_suite("starter", NoSandboxEngine())
    for split in (Split.SEARCH, Split.HOLDOUT):
        rows = pq.read_table(starter / f"{split}.parquet").to_pylist()
        assert [row["id"] for row in rows] == [task.id for task in suite.tasks(split)]
        for row in rows:
            assert row["prompt"] == suite.task(TaskId(row["id"])).prompt
            files = {file["path"]: file["content"].encode() for file in row["files"]}
            assert files == {path: entry.data for path, entry in suite.workspace(TaskId(row["id"])).items()}


def test_hidden_tests_are_in_no_row(starter):
    suite = open_suite("starter", NoSandboxEngine())
    rows = [
        row
        for split in ("search", "holdout")
        for row in pq.read_table(starter / f"{split}.parquet").to_pylist()
    ]
    contents = {file["content"] for row in rows for file in row["files"]}
    tasks = [*suite.tasks(Split.SEARCH), *suite.tasks(Split.HOLDOUT)]
    hidden = {entry.data.decode() for task in tasks for entry in suite.hidden_tests(task.id).values()}
    assert len(hidden) > 50
    assert not {text for text in hidden & contents if text.strip()}


def test_binary_files_are_base64(tmp_path):
    suite = shutil.copytree(asset("benchmarks", "starter"), tmp_path / "suite")
    (repository,) = [path for path in (suite / "repos").iterdir() if path.name == "graphs"]
    (repository / "logo.png").write_bytes(b"\x89PNG\xff\x00")
    write_suite(str(suite), tmp_path / "out", ALICE)
    rows = pq.read_table(tmp_path / "out" / "search.parquet").to_pylist()
    files = [file for row in rows for file in row["files"] if file["path"] == "logo.png"]
    assert files
    assert all(base64.b64decode(file["content"]) == b"\x89PNG\xff\x00" for file in files)
    assert {file["encoding"] for file in files} == {"base64"}


def test_secret_of_this_environment_is_not_published(tmp_path):
    text = open_suite("starter", NoSandboxEngine()).tasks(Split.SEARCH)[0].prompt.split("\n")[0]
    with pytest.raises(UserError, match="secret of this environment"):
        write_suite("starter", tmp_path / "out", replace(ALICE, secrets=(text,)))
    assert not (tmp_path / "out").exists()


def test_what_is_neither_run_nor_suite_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no run"):
        export("nothing", f"hf:{tmp_path / 'out'}")
