"""Options of a mining that are refused before the repository is looked at."""

from dataclasses import replace
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.sessions.mining_checks import check_counts, check_folders, parse_since
from dgm.sessions.mining_options import MiningOptions


@pytest.mark.parametrize("files", [(), ("suite/mined.jsonl",), ("suite.mining/journal.jsonl",)])
def test_a_suite_that_was_not_mined_is_never_replaced(tmp_path, files):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite.mining").mkdir()
    for name in files:
        (tmp_path / name).touch()
    out, journal = tmp_path / "suite", tmp_path / "suite.mining" / "journal.jsonl"
    with pytest.raises(UserError, match=r"cannot be updated without mined\.jsonl"):
        check_folders(out, journal, update=True)
    (out / "mined.jsonl").touch()
    journal.touch()
    check_folders(out, journal, update=True)


def test_a_folder_must_be_there_for_an_update_and_for_that_only(tmp_path):
    journal = tmp_path / "journal.jsonl"
    with pytest.raises(UserError, match="exists; name another"):
        check_folders(tmp_path, journal, update=False)
    with pytest.raises(UserError, match="nothing to update"):
        check_folders(tmp_path / "none", journal, update=True)


def test_a_mining_of_no_task_is_refused(tmp_path):
    nothing = MiningOptions(tmp_path, tmp_path / "suite", history=0, bugs=0)
    with pytest.raises(UserError, match="nothing to mine"):
        check_counts(nothing)
    for more in ({"history": 1}, {"bugs": None}, {"bugs": 1}, {"update": True}):
        check_counts(replace(nothing, **more))


@pytest.mark.parametrize("out", [".", "..", "/", "suite"])
def test_every_folder_has_one_for_the_mining_beside_it(out):
    work = MiningOptions(Path("repo"), Path(out)).work
    assert work.name.endswith(".mining") and work != Path(out)


def test_a_day_begins_at_midnight_and_nothing_else_is_a_day():
    assert parse_since("2024-01-31") == "2024-01-31 00:00:00 +0000"
    assert parse_since("") == ""
    for since in ("nonsense", "2 years ago", "2024-02-31"):
        with pytest.raises(UserError, match=r"--since .*: expected a day such as 2024-01-31"):
            parse_since(since)
