"""A search whose children all fail their self-check ends with exit code 1, and says what they died of."""

import subprocess
import sys

import pytest

from dgm.archive.snapshots import write_folder
from dgm.domain import Entry
from dgm.meta.seeds import read_seed
from tests.support.program import OFFLINE

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]
CHECK = b"""import hashlib, pathlib
files = sorted(path for path in pathlib.Path("agent").rglob("*") if path.is_file())
found = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
print("the sum is", found)
if pathlib.Path("sum.txt").read_text() not in ("", found):
    raise RuntimeError("\\x1b[31mthis agent was changed")
"""
"""Passes in the seed only; run with an empty ``sum.txt`` it says what to write there."""


def frozen_seed(folder):
    """The shipped seed, with a self-check that no changed agent passes."""
    seed = read_seed()
    toml = seed["agent.toml"].data.replace(
        b'check = ["python3", "-m", "agent", "--check"]', b'check = ["python3", "check.py"]'
    )
    assert b"check.py" in toml
    write_folder({**seed, "agent.toml": Entry(toml), "check.py": Entry(CHECK), "sum.txt": Entry(b"")}, folder)
    said = subprocess.run(
        [sys.executable, "-B", "check.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    (folder / "sum.txt").write_text(said.stdout.split()[-1])


def test_a_search_whose_children_all_die_ends_with_their_cause(dgm, tmp_path):
    frozen_seed(tmp_path / "agent")
    words = [
        *OFFLINE,
        "--policy",
        "hgm",
        "--workers",
        1,
        "--name",
        "dying",
    ]
    words += [
        "--max-evaluations",
        6,
        "--agent",
        tmp_path / "agent",
        "--set",
        "limits.stillborn_in_a_row=1",
    ]
    ended = dgm("run", *words, code=1)
    said = "the last child died of one cause, none was born between: check: the self-check exits 1"
    assert f"the search cannot go on: {said}" in ended.stderr
    assert "limits.check_s" in ended.stderr
    assert ended.stderr.rstrip().endswith("to continue: dgm resume dying")
    assert "RuntimeError: \\x1b[31mthis agent was changed" in ended.stdout
    assert "\x1b" not in ended.stdout + ended.stderr
    facts = dgm.json("status", "dying")
    assert (facts["state"], facts["dead_end"]["stage"], facts["dead_end"]["times"]) == (
        "cannot go on",
        "check",
        1,
    )
    assert facts["dead_end"]["output"][0].startswith("the sum is ")
    dgm("report", "dying", "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The search could not go on" in page
    assert "What may help: more processor time for the self-check (limits.check_s)" in page
