"""The catalogue of changes to an agent's source: each applies, composes, and leaves an agent that starts."""

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.offline.catalogue import CATALOGUE
from dgm.offline.edits.kind import Group, Kind, apply_edits
from dgm.offline.edits.source import edits, parse

SEED_FOLDER = Path(__file__).parents[3] / "archive" / "seeds" / "plain"
REPEATABLE = {"more-steps", "fewer-steps", "more-output", "less-output", "shorter-timeout"}
NEEDS_ANOTHER = {"quiet-test-command": "test-after-edit"}
DOES_NOT_START = {"unclosed"}


def seed() -> dict[str, str]:
    """The text files of the seed agent."""
    found = sorted(path for path in SEED_FOLDER.rglob("*") if path.suffix in {".py", ".toml"})
    return {path.relative_to(SEED_FOLDER).as_posix(): path.read_text("utf-8") for path in found}


def by_name(name: str) -> Kind:
    return next(kind for kind in CATALOGUE if kind.name == name)


def base_of(kind: Kind) -> dict[str, str]:
    """The seed with whatever this kind builds upon."""
    files = seed()
    if kind.name in NEEDS_ANOTHER:
        files = apply_edits(files, by_name(NEEDS_ANOTHER[kind.name]).apply(files) or ())
    return files


def start(files: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the agent's own check."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    command = [sys.executable, "-B", "-m", "agent", "--check"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.starts_processes
@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name)
def test_each_kind_leaves_an_agent_that_starts(kind, tmp_path):
    before = base_of(kind)
    changes = kind.apply(before)
    assert changes is not None
    after = apply_edits(before, changes)
    assert after != before
    done = start(after, tmp_path)
    assert (done.returncode == 0) == (kind.name not in DOES_NOT_START), done.stderr


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name)
def test_a_change_that_is_there_is_not_made_again(kind):
    before = base_of(kind)
    after = apply_edits(before, kind.apply(before) or ())
    again = kind.apply(after)
    assert (again is not None) == (kind.name in REPEATABLE)


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name)
def test_a_change_can_be_put_back(kind):
    before = base_of(kind)
    changes = kind.apply(before) or ()
    now = apply_edits(before, changes)
    for change in reversed(changes):
        assert now[change.path].count(change.new) == 1
        now[change.path] = now[change.path].replace(change.new, change.old)
    assert now == before


def stack(number: int, size: int = 8) -> tuple[dict[str, str], list[str]]:
    """The seed after some random changes, one upon the other."""
    rng, files, names = random.Random(number), seed(), []
    while len(names) < size:
        kind = rng.choice([kind for kind in CATALOGUE if kind.name not in DOES_NOT_START])
        changes = kind.apply(files)
        if changes:
            files = apply_edits(files, changes)
            names.append(kind.name)
    return files, names


@pytest.mark.slow
@pytest.mark.parametrize("number", range(150))
def test_stacked_changes_stay_valid_python(number):
    files, names = stack(number)
    for path, text in files.items():
        if path.endswith(".py"):
            ast.parse(text, feature_version=(3, 9))
            assert max(map(len, text.splitlines()), default=0) <= 130, (names, path)


@pytest.mark.starts_processes
@pytest.mark.parametrize("number", range(0, 150, 10))
def test_stacked_changes_leave_an_agent_that_starts(number, tmp_path):
    files, names = stack(number, 12)
    done = start(files, tmp_path)
    assert done.returncode == 0, (names, done.stderr)


def test_a_dozen_helpful_changes_can_be_stacked():
    files, names = seed(), []
    for _ in range(2):
        for kind in CATALOGUE:
            changes = kind.apply(files) if kind.group is Group.HELPFUL else None
            if changes:
                files = apply_edits(files, changes)
                names.append(kind.name)
    assert len(names) >= 12


def test_proportions_of_the_weights():
    whole = sum(kind.weight for kind in CATALOGUE)
    share = {group: sum(k.weight for k in CATALOGUE if k.group is group) / whole for group in Group}
    assert 0.25 <= share[Group.HELPFUL] <= 0.45
    assert share[Group.NEUTRAL] <= 0.15
    assert 0.15 <= share[Group.HARMFUL] <= 0.30


def test_names_are_unique_and_reasons_are_sentences():
    assert len({kind.name for kind in CATALOGUE}) == len(CATALOGUE) >= 40
    assert all(kind.rationale.endswith(".") and len(kind.rationale) < 80 for kind in CATALOGUE)


@pytest.mark.parametrize("files", [{}, {"a.py": ""}, {"a.py": "def (:"}, {"readme.md": "MAX_STEPS = 3"}])
def test_what_is_no_scaffold_is_left_alone(files):
    assert [kind.name for kind in CATALOGUE if kind.apply(files)] == []


OTHER_SCAFFOLD = {
    "bot/main.py": """import os

MAX_TURNS = 12
SYSTEM_PROMPT = "Fix the bug."


def converse(job, llm, run_tool):
    history = [{"role": "system", "content": SYSTEM_PROMPT}]
    turn = 0
    while turn < MAX_TURNS:
        turn += 1
        message = llm.complete(history)
        history.append(message)
        tool_calls = message.get("tool_calls")
        if not tool_calls:
            return 0
        for tool_call in tool_calls[:1]:
            outcome = run_tool(tool_call)
            history.append({"role": "tool", "tool_call_id": tool_call["id"], "content": outcome})
    return 1
""",
}


def test_kinds_apply_to_another_scaffold_by_structure():
    names = set()
    for kind in CATALOGUE:
        changes = kind.apply(OTHER_SCAFFOLD)
        if changes:
            names.add(kind.name)
            text = apply_edits(OTHER_SCAFFOLD, changes)["bot/main.py"]
            assert (parse(text) is not None) == (kind.name not in DOES_NOT_START)
    assert {"more-steps", "reproduce", "until-done", "shorten-results", "execute-all"} <= names


def test_hunks_are_unambiguous_where_lines_repeat():
    before = {"a.py": "x = 1\ny = 2\nx = 1\ny = 2\nx = 1\ny = 2\n"}
    after = {"a.py": "x = 1\ny = 2\nx = 3\ny = 2\nx = 1\ny = 4\n"}
    assert apply_edits(before, edits(before, after)) == after


def test_the_last_line_may_lack_its_end():
    before, after = {"a.py": "a = 1\nb = 2"}, {"a.py": "a = 1\nb = 3"}
    assert apply_edits(before, edits(before, after)) == after
