"""A suite of one small task: ``double`` triples, and the fix is one character."""

from pathlib import Path

from dgm.domain import TaskId

TASK = TaskId("sums-doubling-triples")
FAULT = """\
diff --git a/sums/__init__.py b/sums/__init__.py
--- a/sums/__init__.py
+++ b/sums/__init__.py
@@ -1,2 +1,2 @@
 def double(number):
-    return number * 2
+    return number * 3
"""
FIX = FAULT.replace("* 3", "* 4").replace("* 2", "* 3").replace("* 4", "* 2")
FILES = {
    "suite.toml": """\
name = "hostile"
description = "one task"
license = "Apache-2.0"
[defaults]
timeout_s = 20
test_timeout_s = 12
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
    f"tasks/{TASK}/start.patch": FAULT,
    f"tasks/{TASK}/solution.patch": FIX,
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


def make(folder: Path) -> Path:
    """Writes the suite; returns its folder."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder
