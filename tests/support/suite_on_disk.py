"""A suite of one task, written to a folder, and an engine that must not be asked."""

import shutil
from pathlib import Path

from dgm.domain import TaskId

WORD = Path(__file__).parents[1] / "e2e" / "suites" / "word"
LIB = "sums/__init__.py"
TASK = TaskId("sums-doubling-triples")

START = """\
diff --git a/sums/__init__.py b/sums/__init__.py
--- a/sums/__init__.py
+++ b/sums/__init__.py
@@ -1,2 +1,2 @@
 def double(number):
-    return number * 2
+    return number * 3
"""
SOLUTION = START.replace(
    "-    return number * 2\n+    return number * 3", "-    return number * 3\n+    return number * 2"
)

FILES = {
    "suite.toml": """\
name = "tiny"
description = "one task"
license = "Apache-2.0"
[defaults]
timeout_s = 60
test_timeout_s = 60
""",
    "repos/sums/sums/__init__.py": "def double(number):\n    return number * 2\n",
    "repos/sums/tests/__init__.py": "",
    "repos/sums/tests/test_sums.py": """\
import unittest

from sums import double


class Sums(unittest.TestCase):
    def test_zero(self):
        self.assertEqual(double(0), 0)
""",
    f"tasks/{TASK}/task.toml": """\
split = "search"
repo = "sums"
statement = "prose"
kind = "boundary"
difficulty = "easy"
fail_to_pass = ["tests/test_hidden_double.py::Double::test_two", "tests/test_hidden_double.py::Double::test_five"]
pass_to_pass = ["tests/test_hidden_double.py::Double::test_none", "tests/test_sums.py::Sums::test_zero"]
""",
    f"tasks/{TASK}/problem.md": "# Doubling gives too much\n\nIt is half as much again.\n",
    f"tasks/{TASK}/start.patch": START,
    f"tasks/{TASK}/solution.patch": SOLUTION,
    f"tasks/{TASK}/tests/test_hidden_double.py": """\
import fractions
import unittest

from sums import double


class Double(unittest.TestCase):
    def test_two(self):
        self.assertEqual(double(2), 4)

    def test_five(self):
        self.assertEqual(double(5), 10, "secret-hint")

    def test_none(self):
        self.assertEqual(double(fractions.Fraction(0)), 0)
""",
}


def make_suite(folder: Path) -> Path:
    """Writes the suite; returns its folder."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


class NoEngine:
    """Opens nothing."""

    name = "none"

    def open(self, spec):
        raise AssertionError("no sandbox is needed for this")

    async def reap(self, labels):
        return 0


def adding(path: str, text: str) -> bytes:
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}".encode()


def library(text: str) -> bytes:
    """A patch that makes the library's only file this."""
    new = "".join(f"+{line}\n" for line in text.splitlines())
    head = f"diff --git a/{LIB} b/{LIB}\n--- a/{LIB}\n+++ b/{LIB}\n"
    old = "-def double(number):\n-    return number * 3\n"
    return f"{head}@@ -1,2 +1,{len(text.splitlines())} @@\n{old}{new}".encode()


def copy_word_suite(folder, tasks):
    """Make a suite of several tasks out of the one of a word in a file."""
    shutil.copytree(WORD, folder)
    first = folder / "tasks" / "say-that-it-is-ready"
    for number in range(tasks):
        task = folder / "tasks" / f"status-{number:03}"
        shutil.copytree(first, task)
        with (task / "problem.md").open("a") as problem:
            problem.write(f"\nThis is plant {number}{'.' * (number % 3)}\n")
    shutil.rmtree(first)
    return folder
