"""The journal of a mining."""

import pytest

from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.writing import toml_text
from dgm.config.toml_files import parse_toml
from dgm.errors import UserError


def test_torn_tail_is_dropped(tmp_path):
    file = tmp_path / "work" / "journal.jsonl"
    journal = MiningJournal(file, {"seed": 0})
    journal.put("a", {"n": [1]})
    journal.close()
    file.write_bytes(file.read_bytes() + b'{"key": "b", "val')
    again = MiningJournal(file, {"seed": 0})
    assert (again.get("a"), again.get("b")) == ({"n": [1]}, None)
    again.put("c", "d")
    again.close()
    assert MiningJournal(file, {"seed": 0}).get("c") == "d"


def test_other_options_are_refused_by_name(tmp_path):
    journal = MiningJournal(tmp_path / "journal.jsonl", {"seed": 0, "test": ""})
    journal.put("unit 1", {})
    journal.close()
    with pytest.raises(UserError, match="begun with another test; name another folder"):
        MiningJournal(tmp_path / "journal.jsonl", {"seed": 0, "test": "pytest"})


def test_other_options_begin_anew_before_any_unit_was_tried(tmp_path):
    journal = MiningJournal(tmp_path / "journal.jsonl", {"--test": ""})
    journal.put("environment 1", {})
    journal.close()
    assert MiningJournal(tmp_path / "journal.jsonl", {"--test": "pytest"}).get("environment 1") is None


def test_two_minings_do_not_write_one_journal(tmp_path):
    journal = MiningJournal(tmp_path / "journal.jsonl", {})
    with pytest.raises(UserError, match=r"journal\.jsonl: another mining writes it; wait"):
        MiningJournal(tmp_path / "journal.jsonl", {})
    journal.close()
    MiningJournal(tmp_path / "journal.jsonl", {}).close()


def test_damage_is_told_with_its_line(tmp_path):
    (tmp_path / "journal.jsonl").write_text("[]\n")
    with pytest.raises(UserError, match=r"journal\.jsonl:1: damaged"):
        MiningJournal(tmp_path / "journal.jsonl", {})


def test_toml_is_read_back():
    values = {
        "text": 'a"b\\c\nd\x7f…',
        "none": [],
        "one": ["x"],
        "two": ["x", "y"],
        "number": 1,
        "share": 0.5,
    }
    assert parse_toml(toml_text(values).encode()) == values


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"journal\.jsonl: cannot be written: Not a directory; name another"):
        MiningJournal(tmp_path / "file" / "suite.mining" / "journal.jsonl", {})
