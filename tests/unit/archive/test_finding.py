"""The folders in which runs are looked for."""

from pathlib import Path

import pytest

from dgm.archive.finding import archive_folders
from dgm.errors import UserError


def test_a_tilde_that_no_shell_has_read_is_the_users_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert list(archive_folders(tmp_path, {"DGM_ARCHIVE": "~/runs"})) == [
        tmp_path / "home" / "runs",
        tmp_path / "archive",
    ]


def test_the_home_of_an_unknown_user_is_refused():
    with pytest.raises(UserError, match="DGM_ARCHIVE=~no-such-user/runs: "):
        list(archive_folders(Path(), {"DGM_ARCHIVE": "~no-such-user/runs"}))
