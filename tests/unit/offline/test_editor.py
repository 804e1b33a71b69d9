"""The editor drives a scaffold's tools to one finished change of the scaffold's own source."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dgm.messages import Message, Request, Role, Tool
from dgm.offline.catalogue import CATALOGUE
from dgm.offline.editor import decide_edit, rank_kinds, read_signals
from dgm.offline.edits.kind import Signal, apply_edits
from dgm.offline.edits.reading import OVERVIEW, read
from dgm.offline.knowledge import fold
from dgm.offline.moves import RunCommand
from dgm.offline.performing import perform

SEED_FOLDER = Path(__file__).parents[3] / "archive" / "seeds" / "plain"
SYSTEM = "You are a programmer. The repository is the source of a coding agent: your own. Change it."
PROBLEM = """Improve this coding agent. Keep `python3 -m agent --check` working.

Child number: {number}

- step limit reached: 5 of 10
- output truncated: 5 of 10
"""
TOOLS = (
    Tool("bash", "Run a shell command.", {"properties": {"command": {}}, "required": ["command"]}),
    Tool(
        "edit",
        "Replace a text in a file.",
        {"properties": {"path": {}, "old": {}, "new": {}}, "required": ["path", "old", "new"]},
    ),
)


def seed() -> dict[str, str]:
    found = sorted(path for path in SEED_FOLDER.rglob("*") if path.suffix in {".py", ".toml"})
    return {path.relative_to(SEED_FOLDER).as_posix(): path.read_text("utf-8") for path in found}


def head(limit: int) -> Callable[[str], str]:
    return lambda text: text if len(text) <= limit else text[:limit] + "\n[output truncated]"


def tail(limit: int) -> Callable[[str], str]:
    return lambda text: text if len(text) <= limit else "[output truncated]\n" + text[-limit:]


def both(limit: int) -> Callable[[str], str]:
    half = limit // 2
    return lambda text: text if len(text) <= limit else text[:half] + "\n[output truncated]\n" + text[-half:]


class Scaffold:
    """A loop like the seed's on a folder: one call a step, output cut."""

    def __init__(self, folder: Path, files: dict[str, str], cut: Callable[[str], str] | None = None) -> None:
        self.folder, self.cut, self.steps = folder, cut or head(3000), 0
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")

    def files(self) -> dict[str, str]:
        found = sorted(path for path in self.folder.rglob("*") if path.suffix in {".py", ".toml"})
        return {path.relative_to(self.folder).as_posix(): path.read_text("utf-8") for path in found}

    def bash(self, command: str) -> str:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
        status = f"\nexit status {done.returncode}" if done.returncode else ""
        return done.stdout.decode() + status

    def edit(self, path: str, old: str, new: str) -> str:
        target = self.folder / path
        text = target.read_text("utf-8")
        if text.count(old) != 1:
            return f"error: the text occurs {text.count(old)} times"
        target.write_text(text.replace(old, new), "utf-8")
        return "edited " + path

    def improve(self, problem: str, steps: int = 10) -> list[str]:
        """Everything that was said."""
        messages = [Message(Role.SYSTEM, SYSTEM), Message(Role.USER, problem)]
        for self.steps in range(1, steps + 1):
            conversation = fold(Request(messages, TOOLS))
            decision = decide_edit(conversation)
            made = (
                perform(m, conversation.toolbox, conversation.files, f"c{self.steps}") for m in decision.moves
            )
            calls = tuple(call for call in made if call)
            messages.append(Message(Role.ASSISTANT, decision.say, calls))
            if not calls:
                break
            result = self.cut(getattr(self, calls[0].name)(**json.loads(calls[0].arguments)))
            messages.append(Message(Role.TOOL, result, call_id=calls[0].id))
        return [message.text for message in messages if message.role is Role.ASSISTANT]


@pytest.mark.starts_processes
@pytest.mark.parametrize("number", range(6))
def test_the_seed_gets_a_change_of_the_catalogue_within_ten_steps(number, tmp_path):
    scaffold = Scaffold(tmp_path, seed())
    said = scaffold.improve(PROBLEM.format(number=number))
    outcomes = [apply_edits(seed(), kind.apply(seed()) or ()) for kind in CATALOGUE]
    assert scaffold.files() in outcomes
    assert scaffold.files() != seed()
    assert "DONE" in said[-1]
    assert "Rationale: " in said[-1]


@pytest.mark.starts_processes
def test_children_of_one_parent_differ(tmp_path):
    results = set()
    for number in range(12):
        scaffold = Scaffold(tmp_path / str(number), seed())
        scaffold.improve(PROBLEM.format(number=number))
        results.add(json.dumps(scaffold.files()))
    assert len(results) >= 6


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    "cut", [head(800), tail(1500), both(1200), head(20_000)], ids=["head", "tail", "both", "all"]
)
def test_what_was_cut_is_asked_for_again(cut, tmp_path):
    scaffold = Scaffold(tmp_path, seed(), cut)
    said = scaffold.improve(PROBLEM.format(number=1), steps=40)
    plain = Scaffold(tmp_path / "plain", seed(), head(100_000))
    plain.improve(PROBLEM.format(number=1), steps=40)
    assert "DONE" in said[-1]
    assert {
        path: text for path, text in scaffold.files().items() if not path.startswith("plain")
    } == plain.files()


@pytest.mark.starts_processes
def test_less_output_takes_more_steps(tmp_path):
    steps = []
    for limit in (1000, 3000, 100_000):
        scaffold = Scaffold(tmp_path / str(limit), seed(), head(limit))
        scaffold.improve(PROBLEM.format(number=1), steps=40)
        steps.append(scaffold.steps)
    assert steps[0] > steps[1] > steps[2]


@pytest.mark.starts_processes
def test_too_few_steps_leave_the_source_as_it_was(tmp_path):
    scaffold = Scaffold(tmp_path, seed(), head(1000))
    scaffold.improve(PROBLEM.format(number=1), steps=5)
    assert scaffold.files() == seed()


@pytest.mark.starts_processes
def test_a_change_that_does_not_start_is_put_back(tmp_path):
    broken = next(
        n for n in range(400) if rank_kinds(PROBLEM.format(number=n), code(seed()))[0].name == "unclosed"
    )
    scaffold = Scaffold(tmp_path, seed())
    said = scaffold.improve(PROBLEM.format(number=broken), steps=30)
    assert any("put the change back" in text for text in said)
    assert scaffold.bash("python3 -m agent --check") == "ok\n"


@pytest.mark.starts_processes
def test_an_edit_that_is_refused_ends_the_work(tmp_path):
    scaffold = Scaffold(tmp_path, seed())
    scaffold.edit = lambda path, old, new: "error: read-only file system"  # type: ignore[method-assign]
    said = scaffold.improve(PROBLEM.format(number=1))
    assert said[-1].startswith("DONE")
    assert scaffold.files() == seed()


@pytest.mark.starts_processes
def test_a_folder_without_python_is_left_alone(tmp_path):
    scaffold = Scaffold(tmp_path, {"README.md": "nothing here"})
    said = scaffold.improve(PROBLEM.format(number=1))
    assert said[-1].startswith("DONE")


def test_a_line_beside_a_cut_is_not_believed():
    result = "./a.py\n== ./a.py\n1:x = 1\n2:y = 2\n3:zz = \n[output truncated]"
    messages = [
        Message(Role.SYSTEM, SYSTEM),
        Message(Role.USER, PROBLEM),
    ]
    toolbox = fold(Request(messages, TOOLS)).toolbox
    call = perform(RunCommand(OVERVIEW), toolbox, {}, "c1")
    assert call is not None
    messages += [Message(Role.ASSISTANT, "", (call,)), Message(Role.TOOL, result, call_id="c1")]
    shown = read(fold(Request(messages, TOOLS)))["a.py"]
    assert shown.lines == {1: "x = 1", 2: "y = 2"}
    assert shown.gap == (3, 0)


@pytest.mark.slow
def test_evidence_raises_the_weight_of_what_would_help():
    kinds = [rank_kinds(PROBLEM.format(number=n), code(seed()))[0].name for n in range(600)]
    plain = [rank_kinds(f"Child number: {n}", code(seed()))[0].name for n in range(600)]
    assert kinds.count("more-steps") > 1.2 * plain.count("more-steps")


def test_signals_read_the_counts():
    found = read_signals("- step limit reached: 10 of 10\n- crashed: 0 of 10\n- empty patch: 0 of 0")
    assert found == {Signal.LIMIT: 2.5, Signal.CRASHED: 1.0}


def test_paths_and_timings_do_not_change_the_choice():
    one = rank_kinds("The repository is in /tmp/a1b2. Child number: 3. Took 0.25 s", code(seed()))
    two = rank_kinds("The repository is in /work. Child number: 3. Took 0.5 s", code(seed()))
    assert [kind.name for kind in one] == [kind.name for kind in two]


@pytest.mark.starts_processes
def test_choices_do_not_depend_on_the_hash_seed():
    program = (
        "from tests.unit.offline.test_editor import *\n"
        "print([[k.name for k in rank_kinds(PROBLEM.format(number=n), code(seed()))] for n in range(5)])"
    )
    root = Path(__file__).parents[3]
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(answers) == 1


def code(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if path.endswith(".py")}
