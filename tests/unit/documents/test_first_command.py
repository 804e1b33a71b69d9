"""The program that measures what comes of the first command that is proposed to a new user."""

import json
import sys
from pathlib import Path

import pytest

from dgm.cli.commands import FIRST, help_text

FOLDER = Path(__file__).parents[3] / "docs" / "policies"
DGM = """\
import json, os, sys
from pathlib import Path

archive, words = Path(os.environ["DGM_ARCHIVE"]), sys.argv[1:]
with (archive.parent / "asked").open("a") as file:
    file.write(" ".join(words) + "\\n")
own = {"resolved": 8, "n": 38}
if words[0] == "show":
    print(json.dumps({"own": own}))
else:
    name = words[1] if words[0] == "resume" else words[words.index("--name") + 1]
    (archive / name).mkdir(parents=True, exist_ok=True)
    best = {"id": 0, "depth": 0, "own": own}
    if name != "first-3":
        best = {"id": 7, "depth": 4, "own": {"resolved": 3, "n": 4}}
    print(json.dumps({"evaluations": {"graded": 120}, "agents": 60, "seconds": 150.0, "best": best}))
"""


@pytest.fixture
def program(monkeypatch, tmp_path):
    """The program, writing to a folder of the test's own, with a command that only says what it was asked."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import first_command

    (tmp_path / "dgm.py").write_text(DGM)
    (tmp_path / "page.md").write_text("before\n<!-- first-command -->\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr(first_command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(first_command, "KEPT", tmp_path / "kept.jsonl")
    monkeypatch.setattr(first_command, "ARCHIVE", tmp_path / "archive")
    monkeypatch.setattr(first_command, "PROGRAM", (sys.executable, str(tmp_path / "dgm.py")))
    monkeypatch.setattr(first_command, "SEEDS", range(2, 5))
    monkeypatch.setattr(sys, "argv", ["first_command", "--at-once", "2"])
    yield first_command
    for name in ("first_command", "blocks", "commands"):
        sys.modules.pop(name, None)


@pytest.mark.starts_processes
def test_what_is_missing_is_performed_as_it_is_proposed(program, tmp_path):
    kept = {
        "command": FIRST,
        "seed": 2,
        "evaluations": 120,
        "agents": 61,
        "minutes": 2.5,
        "best": 9,
        "depth": 5,
    }
    kept |= {"best_own": [4, 5], "seed_own": [7, 36]}
    other = kept | {"command": "dgm run --max-evaluations 40", "seed": 4}
    program.KEPT.write_text("".join(json.dumps(line) + "\n" for line in (kept, other)))
    (tmp_path / "archive" / "first-4").mkdir(parents=True)

    assert program.main() == 0

    asked = (tmp_path / "asked").read_text().splitlines()
    begun = " ".join(FIRST.split()[1:])
    assert sorted(asked) == [
        "resume first-4 --json",
        f"{begun} --name first-3 --seed 3 --model offline --sandbox bubblewrap --json",
        "show first-3 0 --json",
        "show first-4 0 --json",
    ]
    assert [json.loads(line)["seed"] for line in program.KEPT.read_text().splitlines()] == [2, 3, 4]
    page = (tmp_path / "page.md").read_text()
    assert "| 2 | 120 | 61 | agent 9, generation 5 | 4 of 5 | 7 of 36 | 2.5 |" in page
    assert "| 3 | 120 | 60 | the seed agent | 8 of 38 | 8 of 38 | 2.5 |" in page
    assert "**2 of 3** hand out an agent that is not the seed." in page


def test_the_command_that_is_measured_is_the_one_that_the_help_proposes():
    assert help_text().endswith(f"Start with: dgm doctor, then {FIRST}")
