"""New files and folders: whatever is in the way of one is one line."""

import errno
import os
from pathlib import Path

import pytest

import dgm
from dgm.errors import Infrastructure, UserError
from dgm.exports.files import new_file, new_folder

TOO_LONG = "x" * 250


def test_a_read_only_place_is_said_though_nothing_can_be_removed_there(tmp_path, monkeypatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", read_only)
    problem = r"t\.csv: cannot be written: Read-only file system"
    with pytest.raises(UserError, match=problem), new_file(tmp_path / "t.csv"):
        read_only()


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_a_name_that_is_too_long_is_said(tmp_path, new) -> None:
    with (
        pytest.raises(UserError, match="cannot be written: File name too long"),
        new(tmp_path / (2 * TOO_LONG)),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_what_fails_for_another_reason_keeps_its_kind(tmp_path) -> None:
    with pytest.raises(Infrastructure, match="git took too long"), new_folder(tmp_path / "r"):
        raise Infrastructure("git took too long")
    assert not list(tmp_path.iterdir())


TARGETS = ["t.graphml", "t.csv", "spend.parquet", "t.dgm", "t.jsonl", "t.patch", "source/", "trajectories/"]


@pytest.mark.starts_processes
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_that_exists_is_written_over(paid_folder, tmp_path, monkeypatch, target) -> None:
    monkeypatch.chdir(tmp_path)
    if target.endswith("/"):
        (tmp_path / target).mkdir()
        (tmp_path / target / "mine").write_text("mine")
    else:
        (tmp_path / target).write_text("mine")
    before = {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")}
    with pytest.raises(UserError, match="already exists"):
        dgm.export(paid_folder, *(["2"] if target == "t.patch" else []), target)
    assert {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")} == before


@pytest.mark.starts_processes
@pytest.mark.parametrize("target", TARGETS)
def test_a_folder_that_is_missing_is_said(paid_folder, tmp_path, target) -> None:
    with pytest.raises(UserError, match=r"no (such )?folder"):
        dgm.export(paid_folder, *(["2"] if target == "t.patch" else []), f"{tmp_path}/none/{target}")
    assert not list(tmp_path.iterdir())
