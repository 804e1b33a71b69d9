"""The offline model solves small problems through whatever tools a scaffold offers, always in the same way."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.offline_talk import SOLVE, TOOLS, Scaffold, tool

pytestmark = pytest.mark.starts_processes
ROOT = Path(__file__).parents[3]
STARTER = ROOT / "benchmarks" / "starter"
LIBRARY = '''"""Shares."""


def share(cents, parts):
    """Split an amount."""
    each, rest = divmod(cents, parts)
    return [each + 1 if index <= rest else each for index in range(parts)]
'''
TEST = """import unittest
from shares.split import share


class Share(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(share(100, 3), [34, 33, 33])
"""
PROBLEM = "# share() hands out too much\n\n`share(100, 3)` gives 101 in all."
FILES = {
    "shares/__init__.py": "",
    "shares/split.py": LIBRARY,
    "tests/__init__.py": "",
    "tests/test_split.py": TEST,
}
MENDED = LIBRARY.replace("index <= rest", "index < rest")
EASY = "tabular-list-upside-down"


class ByView(Scaffold):
    """A scaffold whose viewing tool has one parameter, a path."""

    def run(self, values):
        if len(values) > 1:
            return super().run(values)
        lines = (self.folder / values[0]).read_text().splitlines()
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))


@pytest.mark.parametrize(
    ("kind", "tools"),
    [
        (Scaffold, TOOLS),
        (Scaffold, TOOLS[:1]),
        (
            Scaffold,
            (
                tool("terminal", "Execute a command.", "cmd"),
                tool(
                    "substitute", "Replace one piece of text in a file.", "filename", "search", "replacement"
                ),
            ),
        ),
        (ByView, (tool("view", "Show a file with numbers.", "path"), TOOLS[1])),
    ],
    ids=["shell and edit", "shell", "other names", "view and edit"],
)
def test_a_boundary_is_mended(kind, tools, tmp_path):
    scaffold = kind(tmp_path, tools).write(FILES)
    listed = PROBLEM + "\n\nshares/__init__.py\nshares/split.py\ntests/test_split.py\n"
    said = scaffold.work(listed if kind is ByView else PROBLEM, steps=30)
    assert (tmp_path / "shares/split.py").read_text() == MENDED
    assert said[-1].endswith("DONE")
    assert {len(reply.calls) for reply in scaffold.replies[:-1]} == {1}


def test_without_a_result_nothing_is_edited(tmp_path):
    Scaffold(tmp_path, limit=0).write(FILES).work(PROBLEM, steps=30)
    assert (tmp_path / "shares/split.py").read_text() == LIBRARY


@pytest.mark.parametrize("every_call", [True, False])
def test_an_edit_and_its_test_go_into_one_reply_where_that_is_welcome(every_call, tmp_path):
    scaffold = Scaffold(tmp_path, every_call=every_call).write(FILES)
    scaffold.work(PROBLEM, SOLVE + " You may call several tools in one reply.", 30)
    tried = [[call.name for call in reply.calls] for reply in scaffold.replies if "Trying" in reply.text]
    assert tried[0] == ["edit", "bash"]
    assert (tmp_path / "shares/split.py").read_text() == MENDED


def test_the_example_is_run_before_and_after_a_change_where_a_reproduction_is_asked_for(tmp_path):
    example = (
        "\n\n```\n>>> from shares.split import share\n>>> share(100, 3)\n```\n\nExpected: `[34, 33, 33]`"
    )
    scaffold = Scaffold(tmp_path).write({**FILES, "tests/test_split.py": ""})
    said = scaffold.work(PROBLEM + example, SOLVE + " Reproduce the problem with a small script.", 30)
    commands = [json.loads(call.arguments).get("command", "") for r in scaffold.replies for call in r.calls]
    assert [index for index, text in enumerate(said) if "by a script" in text] == [1]
    assert any(command.startswith("python3 /tmp/probe.py; python3 -m unittest") for command in commands)
    assert (tmp_path / "shares/split.py").read_text() == MENDED


def start(name, folder):
    """A starter task as an agent gets it."""
    facts = tomllib.loads((STARTER / "tasks" / name / "task.toml").read_text())
    shutil.copytree(STARTER / "repos" / facts["repo"], folder, ignore=shutil.ignore_patterns("__pycache__"))
    patch = STARTER / "tasks" / name / "start.patch"
    subprocess.run(
        ["git", "apply", str(patch)],
        cwd=folder,
        check=True,
        env=os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)},
    )
    return facts


def test_an_easy_starter_task_is_solved_within_the_seeds_ten_steps(tmp_path):
    name, folder = EASY, tmp_path / "work"
    facts = start(name, folder)
    Scaffold(folder).work((STARTER / "tasks" / name / "problem.md").read_text())
    shutil.copytree(STARTER / "tasks" / name / "tests", folder / "tests", dirs_exist_ok=True)
    tests = [*facts["fail_to_pass"], *facts["pass_to_pass"]]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()


SCRIPT = """
import pathlib, sys
from dgm.messages import Message, Request, Role, ToolCall
from dgm.offline import decide
from dgm.offline.talk import Edit, Window, show
from tests.support.offline_talk import Scaffold
from tests.unit.offline.test_solve import FILES, PROBLEM
scaffold = Scaffold(pathlib.Path(sys.argv[1])).write(FILES)
print(scaffold.work(PROBLEM, steps=8), [reply.calls for reply in scaffold.replies])
"""


def test_replies_depend_on_the_requests_alone(tmp_path):
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-B", "-c", SCRIPT, str(tmp_path / "work")]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "Trying an edit" in outputs.pop()
