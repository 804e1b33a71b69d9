"""A suite whose hidden tests and reference fixes are full of words that no agent may ever see, and one that it may.

The library that is to be mended prints all tests that it finds when it is imported and used, as a thief's patch would:
while an agent works there are only the visible ones, while its patch is graded the hidden ones, too.
"""

from pathlib import Path

from dgm.domain import TaskId

HIDDEN = ("kiwi-comment", "kiwi-docstring", "kiwi-message", "kiwi-constant", "kiwi-name", "kiwi-fix")
"""Words of hidden tests and of reference fixes."""
SEEN = "kiwi-seen"
"""A word of every library: that it is found shows that the search for the others could find them."""
TASKS = tuple(TaskId(name) for name in ("gauge-is-full-late", "gauge-is-upside-down"))

_SUITE = """\
name = "marked"
description = "hidden tests that would be recognised anywhere"
license = "Apache-2.0"
[defaults]
timeout_s = 60
test_timeout_s = 60
"""
_TASK = """\
split = "search"
difficulty = "easy"
tags = ["python"]
fail_to_pass = ["tests/test_hidden_gauge.py::Hidden::test_what_is_wrong"]
pass_to_pass = ["tests/test_gauge.py::Measuring::test_room"]
"""
_LIBRARY = '''\
"""A gauge (kiwi-seen)."""

import glob


def print_tests():
    for path in glob.glob("tests/*.py"):
        for line in open(path):
            print("> " + line)


print_tests()


class Gauge:
    """How much of something there is, up to a limit."""

    def __init__(self, limit):
        print_tests()
        self.limit = limit
        self.level = 0

    def fill(self, amount):
        self.level = min(self.limit, self.level + amount)

    def room(self):
        return self.limit - self.level

    def is_full(self):
        return self.level > self.limit
'''
_VISIBLE = """\
import unittest

from gauge import Gauge


class Measuring(unittest.TestCase):
    def test_room(self):
        gauge = Gauge(5)
        gauge.fill(2)
        self.assertEqual(gauge.room(), 3)

    def test_full(self):
        gauge = Gauge(5)
        gauge.fill(5)
        self.assertTrue(gauge.is_full())
"""
_HIDDEN = '''\
"""What nobody may see: kiwi-docstring."""

import unittest

from gauge import Gauge

WANTED = "kiwi-constant of the hidden test"
NAMES = {{"kiwi-name": 1}}  # kiwi-comment


class Hidden(unittest.TestCase):
    def test_what_is_wrong(self):
        """It tells kiwi-docstring, too."""
        gauge = Gauge(3)
        gauge.fill(3)
        self.assertEqual(({value}), {wanted}, "kiwi-message: " + WANTED)  # kiwi-comment
'''
_FIX = """\
diff --git a/gauge.py b/gauge.py
--- a/gauge.py
+++ b/gauge.py
@@ -27,4 +27,4 @@ class Gauge:
         return self.limit - self.level

     def is_full(self):
-        return self.level > self.limit
+        return self.level >= self.limit  # kiwi-fix
"""
_ASKED = (
    ("`is_full` of a gauge that is filled to the brim still says no.", "gauge.is_full()", "True"),
    ("A gauge should tell its level as a share with `turned()`.", 'getattr(gauge, "turned", int)()', "0.5"),
)


def make(folder: Path) -> Path:
    """Writes the suite; returns its folder."""
    files = {"suite.toml": _SUITE}
    for task, (asked, value, wanted) in zip(TASKS, _ASKED, strict=True):
        files |= {
            f"tasks/{task}/task.toml": _TASK,
            f"tasks/{task}/problem.md": f"# A gauge tells wrong things\n\n{asked}\n",
            f"tasks/{task}/solution.patch": _FIX.replace("\n\n", "\n \n"),
            f"tasks/{task}/workspace/gauge.py": _LIBRARY,
            f"tasks/{task}/workspace/tests/__init__.py": "",
            f"tasks/{task}/workspace/tests/test_gauge.py": _VISIBLE,
            f"tasks/{task}/tests/test_hidden_gauge.py": _HIDDEN.format(value=value, wanted=wanted),
        }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder
