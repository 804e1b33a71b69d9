"""The journal of a mining, and the packages of an environment."""

import pytest

from dgm.benchmarks.mining.declarations import Declarations
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.packages import SandboxPython, run_setup
from dgm.benchmarks.mining.toml_writing import toml_text
from dgm.errors import UserError
from dgm.toml_files import parse_toml


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
    journal = MiningJournal(tmp_path / "journal.jsonl", {"seed": 0, "--test": ""})
    journal.put("unit 1", {})
    journal.close()
    with pytest.raises(UserError, match="begun with another --test; name another --out"):
        MiningJournal(tmp_path / "journal.jsonl", {"seed": 0, "--test": "pytest"})


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


PROJECT = Declarations(
    project="sums-kit", version="1.2", scripts=(("console_scripts", "sums", "sums.main:run"),)
)
PUT = """
mkdir -p $DGM_PACKAGES/bin $DGM_PACKAGES/{0}/__pycache__ $DGM_PACKAGES/{0}-1.dist-info $DGM_PACKAGES/lib-2.dist-info
printf 'x = 1' > $DGM_PACKAGES/{0}/__init__.py; printf 'x' > $DGM_PACKAGES/{0}/__pycache__/x.pyc
printf '{0}/__init__.py,,\\n../../bin/y,,\\n' > $DGM_PACKAGES/{0}-1.dist-info/RECORD
printf 'b,,\\nbin/tool,,\\na,,\\n' > $DGM_PACKAGES/lib-2.dist-info/RECORD
mkdir $DGM_PACKAGES/enum34-1.dist-info; printf 'x = 1' > $DGM_PACKAGES/enum.py
printf 'enum.py,,\n' > $DGM_PACKAGES/enum34-1.dist-info/RECORD
printf '#!/somewhere/python3\\nprint(1)\\n' > $DGM_PACKAGES/bin/tool
"""


@pytest.mark.starts_processes
def test_environment_has_no_copy_of_the_project_or_of_python_and_is_the_same_twice(tmp_path):
    python = SandboxPython("3.11", "x86_64")
    names = {
        run_setup(PUT.format("sums_kit"), tmp_path, PROJECT, python, tmp_path / each).name for each in "ab"
    }
    assert len(names) == 1
    made = tmp_path / "a" / "environments" / names.pop()
    found = {path.relative_to(made).as_posix(): path for path in made.rglob("*") if path.is_file()}
    assert "packages/sums_kit/__init__.py" not in found
    assert "packages/enum.py" not in found
    assert found["packages/bin/tool"].read_text() == "#!/usr/bin/env python3\nprint(1)\n"
    assert "from sums.main import run" in found["packages/bin/sums"].read_text()
    assert found["packages/lib-2.dist-info/RECORD"].read_text() == "a,,\nb,,\n"
    assert "Version: 1.2\n" in found["packages/sums_kit-1.2.dist-info/METADATA"].read_text()
    record = parse_toml(found["environment.toml"].read_bytes())
    assert (record["machine"], record["requirements"]) == ("", ["lib==2", "sums_kit==1.2"])


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo no such package >&2; exit 3", "exit status 3: no such package"),
        ("true", r"left nothing in \$DGM_PACKAGES"),
    ],
)
def test_setup_that_fails_says_how(tmp_path, command, message):
    with pytest.raises(UserError, match=message):
        run_setup(command, tmp_path, PROJECT, SandboxPython("3.11", "x86_64"), tmp_path / "suite")


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
