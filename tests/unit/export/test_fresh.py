"""New files and folders: whatever is in the way of one is one line."""

import errno
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dgm.cli.export import export
from dgm.errors import Infrastructure, UserError
from dgm.export.fresh import new_file, new_folder

TOO_LONG = "x" * 300


def test_a_read_only_place_is_said_though_nothing_can_be_removed_there(tmp_path, monkeypatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", read_only)
    said = r"t\.dot: cannot be written: Read-only file system"
    with pytest.raises(UserError, match=said), new_file(tmp_path / "t.dot"):
        read_only()


@pytest.mark.parametrize("fresh", [new_file, new_folder])
def test_a_name_that_is_too_long_is_said(tmp_path, fresh) -> None:
    with pytest.raises(UserError, match="cannot be written: File name too long"), fresh(tmp_path / TOO_LONG):
        pass
    assert not list(tmp_path.iterdir())


def test_what_fails_for_another_reason_keeps_its_kind(tmp_path) -> None:
    with pytest.raises(Infrastructure, match="git took too long"), new_folder(tmp_path / "r"):
        raise Infrastructure("git took too long")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("--tree", f"{TOO_LONG}.dot"),
        ("--spend", f"{TOO_LONG}.csv"),
        ("--repository", TOO_LONG),
        ("best", TOO_LONG),
    ],
)
def test_every_target_is_looked_at_so(paid_folder, tmp_path, monkeypatch, words) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="File name too long"):
        CliRunner().invoke(export, [str(paid_folder), *words], standalone_mode=False, catch_exceptions=False)
